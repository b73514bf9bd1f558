// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/google/go-cmp/cmp"
)

// FuzzImport shows that any text makes a valid chain or an error. The notes have
// positions in the file, and the chain survives the way to a descriptor and back.
func FuzzImport(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/tacker/*/*.yaml", "testdata/tacker/*/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		src, err := Text("d.yaml", text)
		if err != nil {
			return
		}
		got, err := Import(src, "")
		if err != nil {
			if strings.Contains(err.Error(), refused) && len(text) < 4<<10 {
				t.Errorf("the chain is not valid: %v", err)
			}
			return
		}
		for _, n := range got.LeftOut {
			if n.Line < 1 || n.Column < 1 || n.Text == "" || strings.ContainsAny(n.String(), "\n\x00") {
				t.Errorf("incomplete or unprintable: %q", n.String())
			}
		}
		first, err := chain.Parse("c.yaml", []byte(got.YAML))
		if err != nil {
			t.Fatal(err)
		}
		again := imported(t, exported(t, got.YAML).YAML)
		if diff := cmp.Diff(first, parsed(t, again.YAML), comparing...); diff != "" {
			t.Errorf("the chain (-) and its descriptor's chain (+) differ:\n%s", diff)
		}
	})
}
