// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Program identifies this program, its version, and the programs that send its
// packets. Two builds of one version differ. The files are read once.
func Program(version string) (report.Program, error) {
	sum, err := build()
	return report.Program{Dray: version, Build: sum}, err
}

var build = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	files := []string{path, filepath.Join(filepath.Dir(path), "librte_net_dray.so")}
	for _, name := range []string{"draygen", "draygen-dpdk", "dray-vnf", "dray-limit"} {
		if own, err := host.OwnProgram(name); err == nil { // a missing one is skipped
			files = append(files, own)
		}
	}
	sum := sha256.New()
	for _, file := range files {
		if err := addFile(sum, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
})

// addFile hashes the name and the content of a file.
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

// SameConditions returns an error if the host or the programs differ from those at
// the start of the run in a directory.
func SameConditions(path string, was, is inventory.Host, by, now report.Program) error {
	if differs := differences(was, is, by, now); len(differs) > 0 {
		return fmt.Errorf("%s was begun with %s: figures from two machines or programs cannot be mixed; start a new run", path, strings.Join(differs, ", "))
	}
	return nil
}

// differences are the changed conditions that affect figures, each with its old
// and new value.
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
