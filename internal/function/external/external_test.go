// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/external"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

func newRuntime() *external.Runtime { return external.New(dockercli.FromEnvironment()) }

// somebodyElse is a process in a network namespace that Drayage did not make.
type somebodyElse struct {
	cmd   *exec.Cmd
	netns host.Netns
}

func (s somebodyElse) end() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func startSomebodyElse(t *testing.T) somebodyElse {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "dray-test-external-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := somebodyElse{cmd: exec.Command("sleep", "1000"), netns: host.Netns{Path: filepath.Join(dir, "net")}}
	pinned := host.NamespaceResource(s.netns.Path)
	t.Cleanup(func() {
		if err := host.Removers()[pinned.Kind](context.Background(), pinned); err != nil {
			t.Error(err)
		}
	})
	if err := host.CreateNetns(s.netns.Path); err != nil {
		t.Fatal(err)
	}
	if err := (host.Place{Netns: s.netns}).Start(s.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

func TestConformance(t *testing.T) {
	testenv.Root(t)
	for name, function := range map[string]func(t *testing.T) chain.Function{
		"pid": func(t *testing.T) chain.Function {
			return chain.Function{External: &chain.External{PID: startSomebodyElse(t).cmd.Process.Pid}}
		},
		"netns": func(t *testing.T) chain.Function {
			return chain.Function{External: &chain.External{Netns: startSomebodyElse(t).netns.Path}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			runtimetest.Run(t, runtimetest.Config{Runtime: newRuntime(), Function: function, External: true})
		})
	}
}

func TestWhatCannotBeFound(t *testing.T) {
	testenv.Root(t)
	dead := startSomebodyElse(t)
	dead.end()
	for name, test := range map[string]struct {
		external chain.External
		want     string
	}{
		"dead process":        {chain.External{PID: dead.cmd.Process.Pid}, "is not running: start the function first"},
		"host namespace":      {chain.External{PID: os.Getpid()}, "host's own network namespace: start it in its own"},
		"no file":             {chain.External{Netns: "/no/such/file"}, "/no/such/file"},
		"not a namespace":     {chain.External{Netns: "/etc/passwd"}, "/etc/passwd is not a network namespace"},
		"a user namespace":    {chain.External{Netns: "/proc/self/ns/user"}, "is not a network namespace"},
		"no docker container": {chain.External{Container: "dray-test-no-such-container"}, "docker container"},
	} {
		t.Run(name, func(t *testing.T) {
			f := runtimetest.New(t, newRuntime(), chain.Function{External: &test.external})
			if err := f.Up(nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			f.NothingLeft()
		})
	}
}

func TestRemovalLeavesTheFunctionAlone(t *testing.T) {
	testenv.Root(t)
	other := startSomebodyElse(t)
	f := runtimetest.Up(t, newRuntime(), chain.Function{External: &chain.External{PID: other.cmd.Process.Pid}})
	if err := (f.Runtime.(runtime.Checker)).Check(context.Background(), f.Spec); err != nil {
		t.Errorf("check of a running function: %v", err)
	}
	f.Remove()
	if id, err := host.Identify(other.cmd.Process.Pid); err != nil || !id.Alive() {
		t.Errorf("the function was killed: %v", err)
	}
	if !other.netns.Exists() {
		t.Error("the function's namespace file was removed")
	}
}

func TestCheckReportsTheEnd(t *testing.T) {
	testenv.Root(t)
	other := startSomebodyElse(t)
	f := runtimetest.Up(t, newRuntime(), chain.Function{External: &chain.External{PID: other.cmd.Process.Pid}})
	other.end()
	err, gone := (f.Runtime.(runtime.Checker)).Check(context.Background(), f.Spec), new(runtime.GoneError)
	if !errors.As(err, &gone) || !gone.Ended || !strings.Contains(err.Error(), "is not running") {
		t.Errorf("check after the end: %v", err)
	}
}

func TestExecSaysHow(t *testing.T) {
	_, err := newRuntime().Exec(context.Background(), runtime.Spec{}, []string{"true"}, runtime.Stdio{})
	if !errors.Is(err, external.ErrNoExec) || !strings.Contains(err.Error(), "nsenter") {
		t.Errorf("error %v", err)
	}
}
