// SPDX-License-Identifier: Apache-2.0

package style

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	changelogHead = "# Changelog\n\nText.\n\n## [Unreleased]\n\n"
	pointer       = "Newer changes are in `changelog/unreleased`, one file each ([how](changelog/README.md)).\n\n"
	released      = "## [0.2.0] - 2026-01-02\n\n### Fixed\n\n- Old.\n\n## [0.1.0] - 2026-01-01\n"
	// joinedChanges are what the changes of changelogTree become.
	joinedChanges = "### Security\n\n- Secure.\n\n### Added\n\n- Listed,\n  in two lines.\n\n- Listed too.\n- `new` is there.\n\n### Changed\n\n- Different.\n\n" +
		"### Deprecated\n\n- Less used.\n\n### Removed\n\n- Gone.\n\n### Fixed\n\n- Listed.\n- Repaired ([how](VERSION)).\n\n  One line\n  more.\n\n  And more.\n- Repaired too.\n"
)

// changelogTree makes a small repository with unreleased changes of all kinds, and with these files.
func changelogTree(t *testing.T, files map[string]string) string {
	t.Helper()
	tree := map[string]string{
		"VERSION": "0.2.0\n",
		"CHANGELOG.md": changelogHead + pointer + "### Fixed\n\n- Listed.\n\n### Added\n\n- Listed,\n  in two lines.\n\n- Listed too.\n\n" +
			released,
		"changelog/unreleased/a-secure.md":  "Security: Secure.\n",
		"changelog/unreleased/b-gone.md":    "Removed: Gone.\n",
		"changelog/unreleased/c-fixed.md":   "Fixed: Repaired ([how](VERSION)).\n\nOne line\nmore.\n\nAnd more.\n",
		"changelog/unreleased/d-fixed.md":   "Fixed: Repaired too.", // no line break
		"changelog/unreleased/e-changed.md": "Changed: Different.\n",
		"changelog/unreleased/f-less.md":    "Deprecated: Less used.\n",
		"changelog/unreleased/g-new.md":     "Added: `new` is there.\n",
	}
	for _, script := range []string{"scripts/changelog.sh", "scripts/build-date.sh"} {
		tree[script] = content(t, script)
	}
	maps.Copy(tree, files)
	dir := t.TempDir()
	for name, text := range tree {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// changelog runs the script in a tree, with the programs of folder path first.
func changelog(dir, path string, args ...string) (output string, ok bool) {
	cmd := exec.Command(filepath.Join(dir, "scripts/changelog.sh"), args...)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1767484800", "PATH="+path+":"+os.Getenv("PATH")) // 2026-01-04
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// snapshot is the text of each file in a tree, without the scripts.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"*", "changelog/unreleased/*"} {
		names, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, name := range names {
			if text, err := os.ReadFile(name); err == nil { // a folder has none
				files[strings.TrimPrefix(name, dir+"/")] = string(text)
			}
		}
	}
	return files
}

func TestChangelogIsJoined(t *testing.T) {
	dir := changelogTree(t, nil)
	before := snapshot(t, dir)
	if got, ok := changelog(dir, ""); !ok || got != "## [Unreleased]\n\n"+joinedChanges {
		t.Errorf("printed\n%s", got)
	}
	if got, ok := changelog(dir, "", "--check"); !ok || got != "" {
		t.Errorf("--check printed\n%s", got)
	}
	if !maps.Equal(snapshot(t, dir), before) {
		t.Errorf("files changed: %q", snapshot(t, dir))
	}
	if got, ok := changelog(dir, "", "release"); ok || !strings.Contains(got, "usage: ") {
		t.Errorf("release without a version printed\n%s", got)
	}
}

func TestChangelogFormIsChecked(t *testing.T) {
	const a = "changelog/unreleased/a.md"
	for name, c := range map[string]struct{ file, text, says string }{
		"a number":          {"changelog/unreleased/12-a.md", "Fixed: Right.\n", "12-a.md: its name"},
		"capital letters":   {"changelog/unreleased/A.md", "Fixed: Right.\n", "A.md: its name"},
		"an underscore":     {"changelog/unreleased/a_b.md", "Fixed: Right.\n", "a_b.md: its name"},
		"another ending":    {"changelog/unreleased/a.txt", "Fixed: Right.\n", "a.txt: its name"},
		"hidden":            {"changelog/unreleased/.a.md", "Fixed: Right.\n", ".a.md: its name"},
		"a folder":          {"changelog/unreleased/a.md/b.md", "Fixed: Right.\n", "a.md: it is not a regular file"},
		"only a blank line": {a, "\n", "a.md: its first line must read"},
		"another kind":      {a, "Improved: Right.\n", "a.md: its first line must read"},
		"no kind":           {a, "Right.\n", "a.md: its first line must read"},
		"a bullet":          {a, "- Fixed: Right.\n", "a.md: its first line must read"},
		"no text":           {a, "Fixed: \n", "a.md: its sentence must begin"},
		"a small letter":    {a, "Fixed: right.\n", "a.md: its sentence must begin"},
		"no full stop":      {a, "Fixed: Right\n", "a.md: its sentence must begin"},
		"lines of Windows":  {a, "Fixed: Right.\r\n", "a.md: its sentence must begin"},
		"two sentences":     {a, "Fixed: Right. `more` of it.\n", "a.md: its first line must be one sentence"},
		"no blank line":     {a, "Fixed: Right.\nMore.\n", "a.md: its second line must be blank"},
		"a blank last line": {a, "Fixed: Right.\n\n", "a.md: it must not end with a blank line"},
		"a heading":         {a, "Fixed: Right.\n\n## More\n", "but has '## More'"},
		"a list":            {a, "Fixed: Right.\n\n- More.\n", "but has '- More.'"},
		"numbers":           {a, "Fixed: Right.\n\n1. More.\n", "but has '1. More.'"},
		"a block":           {a, "Fixed: Right.\n\n```\n", "but has '```'"},
		"indented":          {a, "Fixed: Right.\n\n  More.\n", "but has '  More.'"},
		"a dead link":       {a, "Fixed: Right ([a](VERSION), [b](../VERSION#x)).\n", "a.md: its link ../VERSION#x leads nowhere"},
		"already released":  {a, "Fixed: Old.\n", "a.md: CHANGELOG.md already has its sentence"},
		"no section":        {"CHANGELOG.md", "# Changelog\n\n" + released, "CHANGELOG.md: it must have one line ## [Unreleased]"},
		"text of no kind":   {"CHANGELOG.md", changelogHead + "- Lost.\n\n" + released, "CHANGELOG.md: it has unreleased text of no kind: - Lost."},
		"unknown kind":      {"CHANGELOG.md", changelogHead + "### Lost\n\n- Lost.\n\n" + released, "CHANGELOG.md: it has unreleased changes of kind Lost"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := changelogTree(t, map[string]string{c.file: c.text})
			if got, ok := changelog(dir, "", "--check"); ok || !strings.Contains(got, c.says) || strings.Count(got, "\n") != 1 {
				t.Errorf("printed, instead of one line with %q,\n%s", c.says, got)
			}
		})
	}
	dir := changelogTree(t, map[string]string{a: "Wrong.\n", "changelog/unreleased/B.md": "Wrong too.\n"})
	before := snapshot(t, dir)
	for _, args := range [][]string{{"--check"}, nil, {"release", "0.3.0"}} {
		if got, ok := changelog(dir, "", args...); ok || strings.Count(got, "\n") != 3 {
			t.Errorf("%q of wrong files printed\n%s", args, got)
		}
	}
	if !maps.Equal(snapshot(t, dir), before) {
		t.Errorf("files changed: %q", snapshot(t, dir))
	}
}

// releasedTree is what a release of changelogTree leaves.
var releasedTree = map[string]string{"VERSION": "0.10.0\n", "CHANGELOG.md": changelogHead + pointer + "## [0.10.0] - 2026-01-04\n\n" + joinedChanges + "\n" + released}

func TestChangelogRelease(t *testing.T) {
	dir := changelogTree(t, nil)
	if got, ok := changelog(dir, "", "release", "0.10.0"); !ok || !maps.Equal(snapshot(t, dir), releasedTree) {
		t.Errorf("left %q and printed\n%s", snapshot(t, dir), got)
	}
	// Nothing is unreleased now, until the next change.
	if got, ok := changelog(dir, ""); !ok || got != "" {
		t.Errorf("printed\n%s", got)
	}
	for version, says := range map[string]string{
		"0.11.0": "there is nothing to release", "0.10.0": "already has version 0.10.0", "0.9.9": "0.9.9 is older than 0.10.0",
		"1.0": "'1.0' is not a version", "v1.0.0": "is not a version", "1.0.0-rc1": "is not a version", "01.0.0": "is not a version", "": "is not a version",
	} {
		if got, ok := changelog(dir, "", "release", version); ok || !strings.Contains(got, says) {
			t.Errorf("release %q printed, instead of %q,\n%s", version, says, got)
		}
	}
	if !maps.Equal(snapshot(t, dir), releasedTree) {
		t.Errorf("a refused release left %q", snapshot(t, dir))
	}
	change := filepath.Join(dir, "changelog/unreleased/next.md")
	if err := os.WriteFile(change, []byte("Fixed: Next.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, ok := changelog(dir, "", "release", "0.10.1")
	want := strings.Replace(releasedTree["CHANGELOG.md"], pointer, pointer+"## [0.10.1] - 2026-01-04\n\n### Fixed\n\n- Next.\n\n", 1)
	if !ok || snapshot(t, dir)["CHANGELOG.md"] != want {
		t.Errorf("left %q and printed\n%s", snapshot(t, dir), got)
	}
}

// TestChangelogReleaseInterrupted stops the script while it runs one of its programs.
func TestChangelogReleaseInterrupted(t *testing.T) {
	const section, version, whole, files = "*Unreleased*q CHANGELOG.md", "VERSION.new VERSION", "CHANGELOG.md.new CHANGELOG.md", "-f -- *"
	const unchanged, complete, completeOnceMore, named = "unchanged", "complete", "complete once more", "named once more"
	for name, c := range map[string]struct{ program, arguments, signal, leaves string }{
		"stopped while it prepares":   {"sed", section, "TERM", unchanged},
		"stopped at the version":      {"mv", version, "TERM", complete},
		"stopped at the changelog":    {"mv", whole, "TERM", complete},
		"stopped at the files":        {"rm", files, "TERM", complete},
		"killed while it prepares":    {"sed", section, "KILL", completeOnceMore},
		"killed before the version":   {"mv", version, "KILL", completeOnceMore},
		"killed before the changelog": {"mv", whole, "KILL", completeOnceMore},
		"killed before the files":     {"rm", files, "KILL", named},
	} {
		t.Run(name, func(t *testing.T) {
			dir, bin := changelogTree(t, nil), t.TempDir()
			before := snapshot(t, dir)
			fake := "#!/bin/bash\nif [[ $* == " + strings.ReplaceAll(c.arguments, " ", `\ `) + " ]]; then kill -" + c.signal + " $PPID; [ " + c.signal +
				" = TERM ] || exit; fi\nPATH=${PATH#*:} exec " + c.program + " \"$@\"\n"
			if err := os.WriteFile(filepath.Join(bin, c.program), []byte(fake), 0o700); err != nil {
				t.Fatal(err)
			}
			got, ok := changelog(dir, bin, "release", "0.10.0")
			if ok != (c.leaves == complete) {
				t.Fatalf("the script ended with success %t:\n%s", ok, got)
			}
			after := snapshot(t, dir)
			if text := after["CHANGELOG.md"]; text != before["CHANGELOG.md"] && text != releasedTree["CHANGELOG.md"] {
				t.Errorf("CHANGELOG.md is neither old nor new:\n%s", text)
			}
			switch c.leaves {
			case unchanged:
				ok = maps.Equal(after, before)
			case complete:
				ok = maps.Equal(after, releasedTree)
			case completeOnceMore:
				got, ok = changelog(dir, "", "release", "0.10.0")
				ok = ok && maps.Equal(snapshot(t, dir), releasedTree)
			case named:
				got, _ = changelog(dir, "", "--check")
				ok = strings.Count(got, "already has its sentence; remove the file") == len(before)-len(releasedTree)
			}
			if !ok {
				t.Errorf("it is not %s: %q\n%s", c.leaves, snapshot(t, dir), got)
			}
		})
	}
}
