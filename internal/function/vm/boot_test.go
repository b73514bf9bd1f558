// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/guest/wire"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
)

// TestShowable: a program directory is shown below a closed one, but not if
// machines would see too much, or nothing.
func TestShowable(t *testing.T) {
	above := t.TempDir()
	bin, link := filepath.Join(above, "bin"), filepath.Join(above, "link")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/tmp", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(above, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, fix := range map[string]string{
		bin: "chmod o+rx " + bin, "/tmp": "/tmp/dray", "/mnt": "/mnt/dray", link: "/tmp/dray",
	} {
		if err := showable(dir); !errors.Is(err, host.ErrUnsupported) || !strings.Contains(err.Error(), fix) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{bin, "/usr/bin"} {
		if err := showable(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestRequestForAContainer: only a function that requests one gets it, and its limits
// are the usual ones.
func TestRequestForAContainer(t *testing.T) {
	s := runtime.Spec{Function: chain.Function{Name: "upf", Memory: 64 << 20, Pids: 20, VM: &chain.VM{Runtime: chain.RuntimeProcess}}}
	if r := request(s, wire.RunIt, []string{"true"}); r.Container != nil {
		t.Errorf("a process gets a container: %+v", r.Container)
	}
	s.Function.VM.Runtime = chain.RuntimeRunc
	r := request(s, wire.Beside, []string{"true"})
	if r.Container == nil || *r.Container != (wire.Container{Name: "upf", Verb: wire.Beside}) || r.Memory != 64<<20 || r.Pids != 20 || r.Group != programGroup {
		t.Errorf("%+v", r)
	}
}
