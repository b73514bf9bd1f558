// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/docker"
	"github.com/drayage/dray/internal/function/docker/dockertest"
	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/external"
	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

const image = "dray-test:latest"

// watched reports to the suite what the daemon still keeps of a function.
type watched struct{ *docker.Runtime }

// Leftovers lists the function's containers.
func (w watched) Leftovers(s runtime.Spec) ([]string, error) {
	out, err := w.Client.Output(context.Background(), "ps", "--all", "--format", "{{.Names}}", "--filter", "label=dray.chain="+s.Chain)
	return strings.Fields(out), err
}

func function(*testing.T) chain.Function { return chain.Function{Image: image} }

// TestDocker shares one daemon between all tests that need one.
func TestDocker(t *testing.T) {
	client := dockertest.Start(t)
	dockertest.Import(t, client, image)
	rt := watched{docker.New(docker.Options{Client: client, PauseProgram: dockertest.BuildPause(t)})}
	config := runtimetest.Config{Runtime: rt, Function: function, LateSize: true}

	t.Run("probe", func(t *testing.T) {
		if item := rt.Probe(context.Background()); item.Status != inventory.OK || item.Version == "" {
			t.Errorf("%+v", item)
		}
	})
	t.Run("conformance", func(t *testing.T) { runtimetest.Run(t, config) })
	t.Run("security", func(t *testing.T) {
		// Docker shows the host's /sys, and its own view of cgroups, read-only;
		// an image has files of its own.
		runtimetest.Security(t, config, process.New(), "see PCI devices", "see cgroups", "read shadow")
	})
	t.Run("missing image", func(t *testing.T) { testMissingImage(t, rt) })
	t.Run("daemon gone", func(t *testing.T) { testDaemonGone(t, rt) })
	t.Run("external", func(t *testing.T) { testExternal(t, client) })
	t.Run("somebody else's container", func(t *testing.T) { testNamesake(t, rt) })
	t.Run("lost pause container", func(t *testing.T) { testLostPause(t, rt) })
}

func testMissingImage(t *testing.T, rt runtime.Runtime) {
	f := runtimetest.New(t, rt, chain.Function{Image: "no-such-image:1"})
	var missing *docker.ImageError
	if err := f.Up(nil); !errors.As(err, &missing) || !strings.Contains(err.Error(), "docker pull no-such-image:1") {
		t.Errorf("error %v", err)
	}
	f.NothingLeft()
}

// testDaemonGone removes containers of a daemon whose socket no longer exists.
func testDaemonGone(t *testing.T, rt watched) {
	build, err := rt.Sandbox(runtimetest.New(t, rt, function(t)).Spec)
	if err != nil {
		t.Fatal(err)
	}
	removed := 0
	for _, s := range build.Steps {
		for _, r := range s.Makes {
			remove, ok := rt.Removers()[r.Kind]
			if !ok {
				continue
			}
			removed++
			r.Host = "unix:///no/such/socket"
			if err := remove(context.Background(), r); err != nil {
				t.Error(err)
			}
		}
	}
	if removed == 0 {
		t.Error("the runtime declares no containers")
	}
}

// testNamesake meets a foreign container with the function's name.
func testNamesake(t *testing.T, rt watched) {
	f := runtimetest.Up(t, rt, function(t))
	name := "dray-" + f.Spec.Chain + "-du"
	id, err := rt.Client.Output(context.Background(), "create", "--name", name, image, "true")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.TryStart("true"); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("start: %v", err)
	}
	f.Remove()
	if _, err := rt.Client.Output(context.Background(), "container", "inspect", id); err != nil {
		t.Errorf("a foreign container was removed: %v", err)
	}
	if _, err := rt.Client.Output(context.Background(), "rm", id); err != nil {
		t.Error(err)
	}
}

func testLostPause(t *testing.T, rt watched) {
	f := runtimetest.Up(t, rt, function(t))
	if err := rt.Check(context.Background(), f.Spec); err != nil {
		t.Error(err)
	}
	if _, err := rt.Client.Output(context.Background(), "kill", "dray-"+f.Spec.Chain+"-du-pause"); err != nil {
		t.Fatal(err)
	}
	if err := rt.Check(context.Background(), f.Spec); err == nil {
		t.Error("the loss is not reported")
	}
	if _, err := f.TryStart("true"); err == nil {
		t.Error("a function started without its namespace")
	}
}

// testExternal plumbs a container that Drayage did not start.
func testExternal(t *testing.T, client dockercli.Client) {
	rt := external.New(client)
	parent := host.Cgroup{Path: "/dray-test-somebody-else-" + strconv.Itoa(os.Getpid())}
	t.Cleanup(func() {
		r := host.CgroupResource(parent)
		if err := host.Removers()[r.Kind](context.Background(), r); err != nil {
			t.Error(err)
		}
	})
	somebodyElse := func(t *testing.T) chain.Function {
		id, err := client.Output(context.Background(), "run", "--detach", "--network", "none", "--cgroup-parent", parent.Path, image, "sleep", "1000")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := client.Output(context.Background(), "rm", "--force", id); err != nil {
				t.Error(err)
			}
		})
		return chain.Function{External: &chain.External{Container: id}}
	}
	runtimetest.Run(t, runtimetest.Config{Runtime: rt, Function: somebodyElse, External: true, LateSize: true})
	t.Run("stopped", func(t *testing.T) {
		fn := somebodyElse(t)
		if _, err := client.Output(context.Background(), "kill", fn.External.Container); err != nil {
			t.Fatal(err)
		}
		f := runtimetest.New(t, rt, fn)
		if err := f.Up(nil); err == nil || !strings.Contains(err.Error(), "docker start") {
			t.Errorf("error %v", err)
		}
	})
}

func TestProbeWithoutDaemon(t *testing.T) {
	rt := docker.New(docker.Options{Client: dockercli.Client{Host: "unix:///no/such/socket"}})
	if item := rt.Probe(context.Background()); item.Status != inventory.Missing || item.Fix == "" || !strings.Contains(item.Reason, "no docker daemon responds at unix:///no/such/socket") {
		t.Errorf("%+v", item)
	}
}
