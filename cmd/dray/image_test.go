// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/drayage/dray/experiments"
	"github.com/drayage/dray/images"
	"github.com/drayage/dray/internal/spec/experiment"
)

// Every image that a published experiment builds has a recipe, and every recipe its
// row, but for the one that only Docker containers run in.
func TestPublishedImages(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range experiments.Names() {
		e, err := experiments.Published(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Rows {
			if r.Cell.Tool != experiment.ToolImage {
				continue
			}
			if seen[r.Cell.Image] = true; !slices.Contains(images.Names(), r.Cell.Image) {
				t.Errorf("%s/%s: no recipe %s", name, r.Name, r.Cell.Image)
			}
		}
	}
	if seen["vnf"] = true; len(seen) != len(images.Names()) {
		t.Errorf("rows build %v of %v", seen, images.Names())
	}
}
