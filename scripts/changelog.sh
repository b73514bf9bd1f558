#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Join the changes in changelog/unreleased, one file each, with what CHANGELOG.md has under [Unreleased]. changelog/README.md
# states the form of the files.
#
# usage: scripts/changelog.sh [--check | release VERSION]
#   (nothing)        print the unreleased changes, joined
#   --check          change nothing; fail and say why if a file does not have the form
#   release VERSION  write them into CHANGELOG.md as VERSION of today (scripts/build-date.sh), set the file VERSION, and remove the files
set -euo pipefail
shopt -s nullglob dotglob
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly kinds='Security Added Changed Deprecated Removed Fixed'
# shellcheck disable=SC2016 # the backquotes are those of Markdown
readonly pointer='Newer changes are in `changelog/unreleased`, one file each ([how](changelog/README.md)).'
readonly entries=(changelog/unreleased/*)

fail() {
	echo "changelog: error: $1" >&2
	exit 1
}

# form_of prints what is wrong with the file of a change.
# shellcheck disable=SC2016 # the backquotes are those of Markdown
form_of() {
	local file=$1 lines text line target
	[[ ${file##*/} =~ ^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*\.md$ ]] || echo 'its name must be lower-case words with hyphens, and end in .md'
	[[ -f $file && ! -L $file ]] || {
		echo 'it is not a regular file'
		return
	}
	mapfile -t lines <"$file"
	[[ ${lines[0]-} =~ ^(${kinds// /|}):\ (.*)$ ]] || {
		echo "its first line must read 'KIND: One sentence.', with KIND one of $kinds"
		return
	}
	text=${BASH_REMATCH[2]}
	[[ $text =~ ^[^a-z[:space:]].*\.$ ]] || echo 'its sentence must begin with a capital letter or code, and end with a full stop'
	[[ ! $(sed '1!d; s/`[^`]*`/Code/g' "$file") =~ [.!?]\ +[[:upper:]] ]] || echo 'its first line must be one sentence; put more after a blank line'
	! grep -qxF -- "- $text" CHANGELOG.md || echo 'CHANGELOG.md already has its sentence; remove the file'
	[ ${#lines[@]} -eq 1 ] || [ -z "${lines[1]}" ] || echo 'its second line must be blank'
	[ -n "${lines[-1]}" ] || echo 'it must not end with a blank line'
	for line in "${lines[@]:1}"; do
		[[ ! $line =~ ^([[:space:]#>|]|[-*+]\ |[0-9]+[.\)]\ |\`\`\`) ]] || echo "it must have plain paragraphs only, but has '$line'"
	done
	while read -r target; do
		[[ $target =~ ^[a-z]+:// ]] || [ -e "${target%%#*}" ] || echo "its link $target leads nowhere from the root of the repository"
	done < <(sed 's/`[^`]*`//g' "$file" | grep -oE '\]\([^)]*\)' | tr -d ']()')
}

# form_of_section prints what would be lost from [Unreleased] in CHANGELOG.md.
form_of_section() {
	[ "$(grep -cxF '## [Unreleased]' CHANGELOG.md)" = 1 ] || echo 'it must have one line ## [Unreleased]'
	awk -v kinds="$kinds" -v pointer="$pointer" '
		/^## / { on = $0 == "## [Unreleased]"; kind = "" ; next }
		!on || $0 == "" { next }
		/^### / { kind = substr($0, 5); if (!index(" " kinds " ", " " kind " ")) print "it has unreleased changes of kind " kind ", but kinds are " kinds; next }
		kind == "" && $0 != pointer { print "it has unreleased text of no kind: " $0 }
	' CHANGELOG.md
}

check() {
	local file reasons reason status=0
	for file in "${entries[@]}" CHANGELOG.md; do
		if [ "$file" = CHANGELOG.md ]; then reasons=$(form_of_section); else reasons=$(form_of "$file"); fi
		[ -n "$reasons" ] || continue
		status=1
		while read -r reason; do
			echo "changelog: error: $file: $reason" >&2
		done <<<"$reasons"
	done
	return "$status"
}

# joined prints the unreleased changes by kind: those in CHANGELOG.md first, then those of the files in the order of their names.
joined() {
	awk -v kinds="$kinds" '
		function add(line) {
			if (line == "") { gap = gap "\n"; return }
			text[kind] = text[kind] (text[kind] == "" ? "" : gap) line "\n"
			gap = ""
		}
		FNR == 1 { gap = "" }
		FILENAME == "CHANGELOG.md" {
			if (/^## /) { on = $0 == "## [Unreleased]"; kind = "" }
			else if (on && /^### /) { kind = substr($0, 5); gap = "" }
			else if (on && kind != "") add($0)
			next
		}
		FNR == 1 { kind = $1; sub(/:$/, "", kind); sub(/^[A-Za-z]+: /, "- "); add($0); next }
		{ add($0 == "" ? "" : "  " $0) }
		END {
			count = split(kinds, order)
			for (i = 1; i <= count; i++) if (text[order[i]] != "") { printf "%s### %s\n\n%s", before, order[i], text[order[i]]; before = "\n" }
		}
	' CHANGELOG.md "${entries[@]}"
}

release() {
	local version=$1 last changes date
	[[ $version =~ ^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}$ ]] || fail "'$version' is not a version such as 1.2.3"
	! grep -qF "## [$version]" CHANGELOG.md || fail "CHANGELOG.md already has version $version"
	last=$(sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md | sort -V | tail -n 1)
	[ "$(printf '%s\n' "$last" "$version" | sort -V | tail -n 1)" = "$version" ] || fail "$version is older than $last, the last release"
	changes=$(joined)
	[ -n "$changes" ] || fail 'there is nothing to release: neither in changelog/unreleased nor under [Unreleased] in CHANGELOG.md'
	date=$(scripts/build-date.sh)

	trap 'rm -f VERSION.new CHANGELOG.md.new' EXIT
	echo "$version" >VERSION.new
	{
		sed '/^## \[Unreleased\]$/q' CHANGELOG.md
		printf '\n%s\n\n## [%s] - %s\n\n%s\n' "$pointer" "$version" "$date" "$changes"
		awk '/^## / { if (after && !on) { on = 1; print "" } } $0 == "## [Unreleased]" { after = 1 } on' CHANGELOG.md
	} >CHANGELOG.md.new
	# From here on, no Ctrl-C stops it between two steps. After a kill before the second rename it can be run again; after
	# a kill before the removal, --check names the files that are left.
	trap '' HUP INT TERM
	mv VERSION.new VERSION
	mv CHANGELOG.md.new CHANGELOG.md
	rm -f -- "${entries[@]}"
	echo "released $version in CHANGELOG.md and VERSION; commit them with the removed files"
}

case "$# ${1-}" in
'0 ')
	check
	changes=$(joined)
	[ -z "$changes" ] || printf '## [Unreleased]\n\n%s\n' "$changes"
	;;
'1 --check') check ;;
'2 release')
	check
	release "$2"
	;;
*)
	echo 'changelog: error: usage: scripts/changelog.sh [--check | release VERSION]' >&2
	exit 2
	;;
esac
