// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/drayage/dray/internal/function/docker"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// TestProbeAppArmor uses a client that prints daemons' AppArmor messages.
func TestProbeAppArmor(t *testing.T) {
	testenv.Root(t)
	withProfiles := inventory.OK
	if _, err := host.LookProgram("apparmor_parser"); err != nil {
		withProfiles = inventory.Missing
	}
	for options, want := range map[string]inventory.Status{
		"[name=seccomp,profile=default name=cgroupns]":               inventory.OK,
		"[name=apparmor name=seccomp,profile=default name=cgroupns]": withProfiles,
	} {
		dir := t.TempDir()
		script := "#!/bin/sh\ncase $3 in info) echo '" + options + "';; *) echo 20.10.24;; esac\n"
		if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir)
		item := docker.New(docker.Options{}).Probe(context.Background())
		if item.Status != want || (want == inventory.Missing) != (item.Fix == "apt-get install apparmor") {
			t.Errorf("%s: %+v; want %s", options, item, want)
		}
	}
}
