// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocks(t *testing.T) {
	markdown := strings.Join([]string{
		"# Title", "", "~sh", "one", "two", "~", "text", "~yaml", "sh: no", "~",
		"<!-- not run: takes an hour -->", "~sh", "three", "~", "~sh", "four", "~", "",
	}, "\n")
	got, err := Blocks(strings.ReplaceAll(markdown, "~", fence))
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{Line: 4, Script: "one\ntwo\n"},
		{Line: 13, Script: "three\n", NotRun: "takes an hour"},
		{Line: 16, Script: "four\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBlocksRefusesWhatItCannotRead(t *testing.T) {
	for name, markdown := range map[string]string{
		"no reason":    "<!-- not run -->\n" + fence + "sh\nx\n" + fence + "\n",
		"never closed": fence + "sh\nx\n",
	} {
		if _, err := Blocks(markdown); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestExecutable(t *testing.T) {
	for _, tc := range []struct {
		script string
		ok     bool
	}{
		{"true\n", true},
		{"false\ntrue\n", false},
		{"(exit 3)   # exits 3\ntrue\n", true},
		{"(exit 4)   # exits 3\n", false},
		{"true   # exits 3\n", false},
		{"dray() { return 4; }\ndray run x.yaml --out y\ntrue\n", true},
		{"dray() { return 5; }\ndray run x.yaml --out y   # measure it\ntrue\n", true},
		{"dray() { return 3; }\ndray run x.yaml   # measure it\ntrue\n", false},
		{"dray() { return 3; }\ndray run x.yaml\ntrue\n", false},
		{"dray() { return 4; }\ndray up x.yaml\ntrue\n", false},
	} {
		out, err := exec.Command("bash", "-c", Block{Script: tc.script}.Executable()).CombinedOutput()
		if (err == nil) != tc.ok {
			t.Errorf("%q: %v, want success %v: %s", tc.script, err, tc.ok, out)
		}
	}
}
