// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/experiments"
	"github.com/drayage/dray/images"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/experiment"
)

// Every image that a published experiment builds has a recipe, and every recipe its
// row, except those that hold the functions of other rows.
func TestPublishedImages(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range experiments.Names() {
		e, err := experiments.Find(name)
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
	if seen["vnf"], seen["ran"], seen["fronthaul"] = true, true, true; len(seen) != len(images.Names()) {
		t.Errorf("rows build %v of %v", seen, images.Names())
	}
}

// The list says that an image needs sources, and how to name them.
func TestImageListNamesSources(t *testing.T) {
	t.Setenv("DRAY_IMAGES", t.TempDir())
	var out bytes.Buffer
	if err := run(context.Background(), []string{"image"}, &out, io.Discard); err != nil || !strings.Contains(out.String(), "needs sources: DRAY_RAN_SOURCE or internet access") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// Sources that cannot be used are an error before anything is built.
func TestImageOfNoSources(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DRAY_IMAGES", dir)
	t.Setenv("DRAY_RAN_SOURCE", t.TempDir())
	err := run(context.Background(), []string{"image", "ran"}, io.Discard, io.Discard)
	if !errors.Is(err, host.ErrUnsupported) || !strings.Contains(err.Error(), "has no file srsue/CMakeLists.txt (set DRAY_RAN_SOURCE") {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
