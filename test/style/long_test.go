// SPDX-License-Identifier: Apache-2.0

package style

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLongTestsExist: each line of scripts/long-tests.txt names a test, which would otherwise be in both parts of the tests, and its lane.
func TestLongTestsExist(t *testing.T) {
	tests := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, name := range tracked(t, "*_test.go") {
		for _, m := range function.FindAllStringSubmatch(content(t, name), -1) {
			tests[filepath.Dir(name)+" "+m[1]] = true
		}
	}
	seen := 0
	for _, line := range strings.Split(content(t, "scripts/long-tests.txt"), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		seen++
		test, lane := line[:strings.LastIndexByte(line, ' ')], line[strings.LastIndexByte(line, ' ')+1:]
		if !tests[test] || !slices.Contains([]string{"flows", "extra", "alone"}, lane) {
			t.Errorf("scripts/long-tests.txt: there is no test or no lane %s", line)
		}
	}
	if seen == 0 {
		t.Error("no long test was found")
	}
}
