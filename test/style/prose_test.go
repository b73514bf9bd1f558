// SPDX-License-Identifier: Apache-2.0

package style

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// comment is a comment of Go or C on one line, or a line within one.
var comment = regexp.MustCompile(`(?m)(?://|/\*|^\s*\*) ?(.*)$`)

func TestSentencesAreShort(t *testing.T) {
	for _, name := range tracked(t, "*.md") {
		for _, s := range longSentences(name, content(t, name)) {
			t.Error(s)
		}
	}
}

func TestConditionsAreNotPlaces(t *testing.T) {
	var docs, code strings.Builder
	for _, name := range tracked(t, "*.md") {
		for _, p := range paragraphs(content(t, name)) {
			docs.WriteString(p.text + "\n")
		}
	}
	for _, name := range tracked(t, "*.go", "*.c", "*.h") {
		for _, m := range comment.FindAllStringSubmatch(content(t, name), -1) {
			code.WriteString(m[1] + "\n")
		}
	}
	for name, prose := range map[string]string{"documents": docs.String(), "comments": code.String()} {
		places, conditions := wheres(prose)
		if float64(places) > maxWhere*float64(conditions) {
			t.Errorf("%s have %d \"where\" and %d \"if\" or \"when\": say \"if\" for a condition and \"when\" for a time", name, places, conditions)
		}
	}
}

// proseFrom is the last commit whose subject need not follow the rule.
const proseFrom = "3b1b40f"

func TestCommitSubjects(t *testing.T) {
	log := exec.Command("git", "-c", "safe.directory=*", "log", "--no-merges", "--format=%s", proseFrom+"..HEAD")
	log.Dir = root
	out, err := log.Output()
	if err != nil {
		t.Skipf("the history is not here, or does not reach back to %s: %v", proseFrom, err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if why := subject(line); line != "" && why != "" {
			t.Errorf("commit %s", why)
		}
	}
}

func TestProseRulesCatch(t *testing.T) {
	long := strings.Repeat("word ", maxSentence+1)
	for _, markdown := range []string{long, "- " + long, "| a | " + long + " |", "short.\n" + long, "one line of\n" + long} {
		if got := longSentences("x.md", markdown); len(got) != 1 {
			t.Errorf("%q gave %q", markdown, got)
		}
	}
	for _, markdown := range []string{
		strings.Repeat("word ", maxSentence), "```\n" + long + "\n```", "# " + long, strings.Repeat("word. ", 2*maxSentence),
		"`" + long + "`", "A sentence.\n\nAnother one.",
	} {
		if got := longSentences("x.md", markdown); len(got) > 0 {
			t.Errorf("%q gave %q", markdown, got)
		}
	}
	if places, conditions := wheres("Where it is, if it is; when and where."); places != 2 || conditions != 2 {
		t.Errorf("%d places, %d conditions", places, conditions)
	}
	for line, good := range map[string]bool{
		"spec: read units": true, "cmd/dray: x": true, "Say what is new": false, "spec:": false, "a: " + strings.Repeat("x", maxSubject): false,
	} {
		if got := subject(line); (got == "") != good {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// tracked are the files of the repository that match a pattern, in order.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	list := exec.Command("git", append([]string{"-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "--"}, patterns...)...)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	names := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(out)), "\n"), func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err != nil
	})
	if len(names) < 10 {
		t.Fatalf("only %d files match %q", len(names), patterns)
	}
	return names
}

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
