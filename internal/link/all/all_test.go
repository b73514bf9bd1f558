// SPDX-License-Identifier: Apache-2.0

package all_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/all"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// TestRegistry checks that names and ranks are unique and in order, and that
// every driver's folder is listed.
func TestRegistry(t *testing.T) {
	names, ranks := map[string]bool{}, map[int]bool{}
	last := 0
	for _, d := range all.All() {
		rank := d.Caps().Rank
		if names[d.Name()] || ranks[rank] {
			t.Errorf("%s (rank %d) is there twice", d.Name(), rank)
		}
		names[d.Name()], ranks[rank] = true, true
		if rank > 0 && rank < last {
			t.Errorf("%s (rank %d) is out of order", d.Name(), rank)
		}
		last = max(last, rank)
		if d.Name() == "loopback" && rank >= 0 {
			t.Errorf("loopback has rank %d: auto would choose it", rank)
		}
		if _, err := json.Marshal(d.Caps()); err != nil {
			t.Error(err)
		}
	}
	if !names["loopback"] {
		t.Error("there is no transport loopback")
	}
	folders, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range folders {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(text), "\nconst Name = \"")
		name, _, _ := strings.Cut(rest, "\"")
		if found && !names[name] {
			t.Errorf("the driver %s of %s is not in the list", name, file)
		}
	}
}

// TestProbes checks that each missing item comes with a reason and a fix.
func TestProbes(t *testing.T) {
	testenv.Root(t)
	for _, d := range all.All() {
		item := d.Probe(context.Background())
		t.Logf("%+v", item)
		if item.Name != d.Name() || item.Status == "" {
			t.Errorf("%s: %+v", d.Name(), item)
		}
		if item.Status == inventory.Missing && (item.Reason == "" || item.Fix == "") {
			t.Errorf("%s is missing without reason and fix: %+v", d.Name(), item)
		}
	}
}
