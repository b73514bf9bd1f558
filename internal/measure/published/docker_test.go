// SPDX-License-Identifier: Apache-2.0

package published

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/test/testenv"
)

// Each tool measures Docker containers: their chains are valid, and name an image that
// has the functions' commands.
func TestChainsOfDockerContainers(t *testing.T) {
	host := t.TempDir() // has the generator
	testenv.Must(t, os.WriteFile(filepath.Join(host, "draygen"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", host+":"+os.Getenv("PATH"))
	for tool, image := range map[experiment.Tool]string{
		experiment.ToolTCP: "dray-debian", experiment.ToolRequests: "dray-debian", experiment.ToolPingPong: "dray-debian",
		experiment.ToolUDP: "dray-debian", experiment.ToolOneWay: "dray-debian", experiment.ToolClocks: "dray-debian",
		experiment.ToolStart: "dray-debian", experiment.ToolDensity: "dray-debian", experiment.ToolCyclictest: "dray-debian",
		experiment.ToolChecks: "dray-debian", experiment.ToolEcho: "dray-debian", experiment.ToolSockets: "dray-debian", experiment.ToolRecovery: "dray-vnf",
	} {
		c := experiment.Cell{Tool: tool, Transport: "veth", Face: chain.FaceNetdev, Runtime: chain.RuntimeDocker, Functions: 3}
		text := chainText(host2(), c)
		parsed, err := chain.Parse(c.String(), text)
		if err != nil {
			t.Errorf("%s: %v\n%s", tool, err, text)
			continue
		}
		for _, f := range parsed.Functions {
			if f.Runtime == chain.RuntimeDocker && f.Image != image || f.Runtime != chain.RuntimeDocker && tool != experiment.ToolChecks {
				t.Errorf("%s: function %s in %s of image %q, want %q", tool, f.Name, f.Runtime, f.Image, image)
			}
		}
		if strings.Contains(string(text), "/draygen") {
			t.Errorf("%s: the command is a file of the host:\n%s", tool, text)
		}
		in := c
		in.Runtime = chain.RuntimeRunc
		if expect(c, time.Second) <= expect(in, time.Second) {
			t.Errorf("%s: Docker containers take no longer", tool)
		}
	}
	for vnf, image := range map[matrix.VNF]string{matrix.VNFDirect: "dray-debian", "l2fwd": "dray-vnf"} {
		c := experiment.Cell{Tool: experiment.ToolFrames, Transport: "vhost-user", Face: chain.FaceDPDK, Runtime: chain.RuntimeDocker, VNF: vnf, Load: "max", Size: 64}
		if got := matrixOf(c, time.Second).Image; got != image {
			t.Errorf("%s runs in %q, want %q", vnf, got, image)
		}
	}
	if got := dockerImage(experiment.Cell{Tool: experiment.ToolTCP, Runtime: chain.RuntimeRunc}); got != "" {
		t.Errorf("a runc container has the image %q", got)
	}
}

// Progress names the experiments that a cell is measured for.
func TestProgressNamesExperiments(t *testing.T) {
	run := labRun()
	for _, c := range []struct {
		cell experiment.Cell
		want string
	}{{tcp("veth"), "x (1 of 2), y (2 of 2)"}, {tcp("sr-iov"), "y (2 of 2)"}} {
		if got := shownBy(run, c.cell); got != c.want {
			t.Errorf("%s is of %q, want %q", c.cell, got, c.want)
		}
	}
}

// Each row is planned once.
func TestPlanned(t *testing.T) {
	run := labRun()
	run.Skipped[tcp("sr-iov").String()] = "no VF"
	if rows, inGuest, notRun := Planned(run); rows != 6 || inGuest != 1 || notRun != 2 {
		t.Errorf("%d rows, %d in a guest, %d not run", rows, inGuest, notRun)
	}
}

// No lab guest runs a Docker daemon.
func TestDockerNeedsThisKernel(t *testing.T) {
	c := below("sfq", chain.RuntimeDocker)
	lab, skipped := Divide(host2(), Lab{Obstacle: func(chain.VMKernel) string { return "" }}, []experiment.Cell{c})
	if len(lab) != 0 || !strings.Contains(skipped[c.String()], "no sfq: no Docker daemon runs in a lab guest") {
		t.Errorf("%v, %v", lab, skipped)
	}
}
