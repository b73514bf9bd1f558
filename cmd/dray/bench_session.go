// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/inventory"
)

// takeUp checks that an interrupted run may go on here, where it was begun on that
// host by that dray, and removes what it left.
func takeUp(ctx context.Context, dir string, was inventory.Host, by report.Program, n *node.Node, inv *inventory.Inventory) error {
	now, err := program()
	if err != nil {
		return err
	}
	if differs := differences(was, inv.Host, by, now); len(differs) > 0 {
		return fmt.Errorf("%s was begun with %s: figures of two machines or programs do not mix; begin anew with --afresh (a matrix) or another --out",
			dir, strings.Join(differs, ", "))
	}
	_, err = n.Collect(ctx)
	return err
}

// program is this one, with the programs that make packets for it. Two builds of one
// version are two programs. The files are read once.
var program = sync.OnceValues(func() (report.Program, error) {
	path, err := os.Executable()
	if err != nil {
		return report.Program{}, err
	}
	files := []string{path, filepath.Join(filepath.Dir(path), "librte_net_dray.so")}
	for _, name := range []string{"draygen", "draygen-dpdk", "dray-vnf", "dray-limit"} {
		if own, err := host.OwnProgram(name); err == nil { // one that is missing takes no part
			files = append(files, own)
		}
	}
	sum := sha256.New()
	for _, file := range files {
		if err := addFile(sum, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return report.Program{}, err
		}
	}
	return report.Program{Dray: version, Build: hex.EncodeToString(sum.Sum(nil)[:8])}, nil
})

// addFile writes the name of a file, and what it holds.
func addFile(to io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintln(to, filepath.Base(path))
	if _, err := io.Copy(to, f); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// differences are what changes figures and is not now as it was, each with both.
func differences(was, is inventory.Host, by, now report.Program) []string {
	var differs []string
	for _, c := range []struct{ what, was, is string }{
		{"host", was.Hostname, is.Hostname}, {"processor", was.CPUModel, is.CPUModel}, {"kernel", was.Kernel, is.Kernel},
		{"kernel command line", was.CmdLine, is.CmdLine}, {"governor", was.Governor, is.Governor},
		{"free CPUs", fmt.Sprint(was.CPUs), fmt.Sprint(is.CPUs)},
		{"dray", by.Dray, now.Dray}, {"build of dray", by.Build, now.Build},
	} {
		if c.was != c.is {
			differs = append(differs, fmt.Sprintf("%s %q, now %q", c.what, c.was, c.is))
		}
	}
	return differs
}

// interrupted says what can be done with a run that err ended.
func interrupted(err error, dir string) error {
	return fmt.Errorf("%w: nothing is left up; `dray report %[2]s` shows what there is, `dray bench --resume %[2]s` goes on", err, dir)
}

// progressOf reports the state of a run.
func (a *app) progressOf(p runner.Progress) { a.progress("  %s", p) }

// seedOr is the seed, or a new one where it is 0.
func seedOr(seed uint64) uint64 {
	if seed == 0 {
		return 1 + rand.Uint64N(1<<53-1) // exact in JSON readers that use doubles
	}
	return seed
}
