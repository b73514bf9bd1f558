// SPDX-License-Identifier: Apache-2.0

package eal

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
)

func setting() Setting {
	return Setting{Memory: 512 << 20, Vdevs: []dpdk.Vdev{{Function: "du", Port: "n3", Driver: dpdk.NetDray, Options: "port=n3"}}}
}

func TestTheSettingComesBack(t *testing.T) {
	want := setting()
	want.HugePages, want.CPUs, want.Whole = []chain.HugePages{{Size: 2 << 20, Limit: 256 << 20}}, 2, true
	env, err := want.Env()
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(strings.TrimPrefix(env, Variable+"="))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	for _, text := range []string{"", "{}", "{"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q is no setting", text)
		}
	}
}

// A program that measures has one device.
func TestOnlyOnePort(t *testing.T) {
	s := setting()
	s.Vdevs = append(s.Vdevs, dpdk.Vdev{Function: "du", Port: "m", Driver: dpdk.NetMemif})
	env, err := s.Env()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, strings.TrimPrefix(env, Variable+"="))
	if got, err := read("m"); err != nil || len(got.Vdevs) != 1 || got.Vdevs[0].Port != "m" || !got.Attended() {
		t.Errorf("%v: %+v", err, got)
	}
	if got, err := read(""); err != nil || len(got.Vdevs) != 2 {
		t.Errorf("all: %v: %+v", err, got)
	}
	if _, err := read("x"); err == nil || !strings.Contains(err.Error(), "no dpdk port x") {
		t.Error(err)
	}
}

// The arguments follow the limits of the container: its memory, its huge pages
// and its CPUs, which are its own if the kubelet said so and they are as many.
func TestArgumentsFollowTheLimits(t *testing.T) {
	const driver, end = "/run/dray/lib/23/librte_net_dray.so", "-d /run/dray/lib/23/librte_net_dray.so --vdev net_dray0,port=n3,dir=/run/dray/ports"
	for name, c := range map[string]struct {
		change func(*Setting)
		cpus   []int
		want   string
	}{
		"plain pages": {func(*Setting) {}, []int{0, 1}, "--no-huge --no-shconf -m 384 --iova-mode=va --no-pci --no-telemetry --lcores 0@(0,1),1@(0,1) " + end},
		"huge pages": {func(s *Setting) { s.HugePages = []chain.HugePages{{Size: 2 << 20, Limit: 256 << 20}} }, []int{0},
			"--in-memory --single-file-segments --socket-limit 256 --iova-mode=va --no-pci --no-telemetry --lcores 0@(0),1@(0) " + end},
		"its own CPUs": {func(s *Setting) { s.CPUs, s.Whole = 3, true }, []int{2, 3, 5},
			"--no-huge --no-shconf -m 384 --iova-mode=va --no-pci --no-telemetry --lcores 0@2,1@3,2@5 " + end},
		"a kubelet that gives none": {func(s *Setting) { s.CPUs, s.Whole = 3, true }, []int{0, 1},
			"--no-huge --no-shconf -m 384 --iova-mode=va --no-pci --no-telemetry --lcores 0@(0,1),1@(0,1),2@(0,1) " + end},
	} {
		s := setting()
		c.change(&s)
		got, err := s.application(c.cpus, 1, driver).EAL()
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", name, err, strings.Join(got, " "), c.want)
		}
	}
}

// A node has drivers for some versions of DPDK, and says which.
func TestTheDriverIsThatOfTheProgramsDPDK(t *testing.T) {
	drivers := t.TempDir()
	write(t, filepath.Join(drivers, "23", dpdk.DriverFile))
	if file, err := driverFor(drivers, "/bin/testpmd", "23"); err != nil || file != filepath.Join(drivers, "23", dpdk.DriverFile) {
		t.Errorf("%q, %v", file, err)
	}
	_, err := driverFor(drivers, "/bin/testpmd", "25")
	const want = "testpmd uses DPDK 24.11, and this node has the driver net_dray only for DPDK 22.11"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A script's DPDK is that of its image.
func TestTheDPDKOfAScript(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "start.sh")
	write(t, script)
	for _, c := range []struct{ add, abi, fault string }{
		{"", "", "the image has none"},
		{"usr/lib/x86_64-linux-gnu/librte_ethdev.so.23.0", "23", ""},
		{"usr/lib/x86_64-linux-gnu/librte_ethdev.so.23", "23", ""},
		{"usr/local/lib64/librte_ethdev.so.25", "", "several versions of it (23, 25)"},
	} {
		if c.add != "" {
			write(t, filepath.Join(dir, c.add))
		}
		abi, err := root(dir).abiOf(script)
		if abi != c.abi || (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("with %q: %q, %v", c.add, abi, err)
		}
	}
}

func write(t *testing.T, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}
