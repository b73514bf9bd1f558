#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Take each check of libdray out in turn (list.txt) and show that a test fails then.
# A mutation that no test notices, or that no longer applies, fails. The last line counts them.
#
# usage: dataplane/port/tests/mutations/run.sh [words of the mutations to run]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
readonly list=tests/mutations/list.txt work=${TMPDIR:-/tmp}/dray-mutations.$$
readonly limit=60 # seconds for a test; one that hangs has noticed
export DRAY_TEST_PATIENCE=7 # a test that waits for what a mutation prevents gives up after 21 s
caught=0 missed=0
trap 'rm -rf "$work"' EXIT

compile() {
	local test=$1 extra=() support=("$work"/tests/{broker,fakebroker,linger,memory,offered,rawend,scribble,test,victim}.c)
	[ "$test" != vectors ] || extra=("$work/tests/vectorfile.c")
	case $test in
	hostile_bells | both_sleep) extra=('-Wl,--wrap=setsockopt') ;;
	egress/port | egress/broker) ;;
	egress/*) support=("$work/tests/egress/rig.c") extra=(-lm) ;;
	esac
	gcc -std=gnu11 -D_GNU_SOURCE -O1 -w -DDRAY_VERSION='"mutation"' -I"$work/include" -I"$work/src" -I"$work/tests" \
		"$work"/src/*.c "$work"/src/*/*.c "${support[@]}" "$work/tests/$test.c" -pthread "${extra[@]}" -o "$work/test"
}

# try one mutation: its name, test, file, old and new text.
try() {
	local name=$1 test=$2 file=$3 status
	case $name in *"$wanted"*) ;; *) return ;; esac
	rm -rf "$work" && mkdir -p "$work" && cp -r include src tests "$work"
	# A text that the source breaks over several lines is found as well.
	if ! OLD=$4 NEW=$5 perl -0pi -e 'BEGIN {
			($o, $n) = @ENV{qw(OLD NEW)};
			$broken = join("\\s+", map { s/\\\(/\\(\\s*/gr } map { quotemeta } split(/\s+/, $o));
		}
		$found += index($_, $o) >= 0 ? s/\Q$o\E/$n/g : s/$broken/$n/g;
		END { exit !$found }' "$work/$file"; then
		echo "FAIL  $name: $file no longer has: $4"
		missed=$((missed + 1))
		return
	fi
	if ! compile "$test" 2>"$work/errors"; then
		echo "FAIL  $name: does not compile: $(head -n1 "$work/errors")"
		missed=$((missed + 1))
		return
	fi
	TMPDIR=$work timeout "$limit" "$work/test" "$PWD/vectors" >/dev/null 2>"$work/said"
	status=$?
	if [ "$status" -eq 0 ] || [ "$status" -eq 77 ]; then
		echo "FAIL  $name: $test does not notice"
		missed=$((missed + 1))
	else
		echo "ok    $name: $test ($(tail -n1 "$work/said" | cut -c1-90))"
		caught=$((caught + 1))
	fi
}

wanted=$*
name='' test='' file='' old=''
while IFS= read -r line; do
	case $line in
	'mutation '*)
		IFS='|' read -r name test file <<<"${line#mutation }"
		name=${name% } test=${test// /} file=${file// /}
		;;
	'- '*) old=${line#- } ;;
	'+'*) new=${line#+} && try "$name" "$test" "$file" "$old" "${new# }" ;;
	esac
done <"$list"
printf '%d mutations noticed, %d not\n' "$caught" "$missed"
[ "$missed" -eq 0 ] && [ "$caught" -gt 0 ]
