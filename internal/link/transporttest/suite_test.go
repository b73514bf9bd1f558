// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// faulty is a driver with one extra effect, or with reduced capabilities.
type faulty struct {
	transport.Driver
	extra func(transport.Spec, *transport.Build) error
	caps  func(*inventory.Caps)
}

func (f faulty) Caps() inventory.Caps {
	c := f.Driver.Caps()
	if f.caps != nil {
		f.caps(&c)
	}
	return c
}

func (f faulty) Build(s transport.Spec) (*transport.Build, error) {
	b, err := f.Driver.Build(s)
	if err == nil && f.extra != nil {
		b.Steps = append(b.Steps, step.Step{Name: "fault", Do: func(context.Context) error { return f.extra(s, b) }})
	}
	return b, err
}

// suiteFaults are faults of a driver, each with the part of the suite that
// must detect it, and its message.
var suiteFaults = map[string]struct {
	driver faulty
	part   func(*testing.T, transport.Driver)
	want   string
}{
	"no fault in ports":      {faulty{}, testPorts, ""},
	"no fault in throughput": {faulty{}, throughput, ""},
	"the switch has an address": {faulty{extra: func(s transport.Spec, _ *transport.Build) error {
		return s.SwitchNetns().AddAddr(s.SwitchPort(0).Name, netip.MustParsePrefix("10.9.9.9/24"))
	}}, testPorts, "of the switch has the addresses"},
	"an offload is changed in silence": {faulty{extra: func(s transport.Spec, _ *transport.Build) error {
		return s.Ends[1].Netns.SetOffload(s.Ends[1].Name, "tx-checksum", false)
	}}, testPorts, "none was reported as changed"},
	"an offload is reported but not changed": {faulty{extra: func(s transport.Spec, b *transport.Build) error {
		b.Report.Offloads = append(b.Report.Offloads, transport.OffloadChange{End: s.Ends[0].Name, Feature: "tx-checksum", Reason: "none"})
		return nil
	}}, testPorts, "but f1u has"},
	"the link is slow": {faulty{extra: func(s transport.Spec, _ *transport.Build) error {
		return s.Ends[0].Netns.SetQdisc(s.Ends[0].Name, host.Qdisc{Kind: "tbf", Rate: 500e3}) // takes 17 s
	}}, func(t *testing.T, d transport.Driver) { testThroughput(t, d, Options{}, 3*time.Second) }, "iperf3 gets no 1048576 bytes"},
	"a namespace stays open": {faulty{}, func(t *testing.T, d transport.Driver) {
		before, _ := leaks(t)
		ns, err := os.Open("/proc/self/ns/net")
		testenv.Must(t, err)
		defer ns.Close()
		checkLeaks(t, before)
	}, "descriptors of network namespaces are open"},
	"a process stays": {faulty{}, func(t *testing.T, d transport.Driver) {
		before, _ := leaks(t)
		cmd := exec.Command("sleep", "1000")
		testenv.Must(t, cmd.Start())
		checkLeaks(t, before)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}, "child processes are left"},
	"an isolation that no chain file knows": {faulty{caps: func(c *inventory.Caps) { c.Isolation = "some" }}, testCaps, "is none that a chain file knows"},
	"no face":                               {faulty{caps: func(c *inventory.Caps) { c.Faces = nil }}, testCaps, "incomplete"},
	"no largest MTU":                        {faulty{caps: func(c *inventory.Caps) { c.MaxMTU = 0 }}, testCaps, "incomplete"},
}

func throughput(t *testing.T, d transport.Driver) { testThroughput(t, d, Options{}, setupTimeout) }

// suiteFault is set in the environment of a test that must fail.
const suiteFault = "DRAY_TEST_SUITE_FAULT"

// TestSuiteNotices runs parts of the suite on faulty drivers: each must fail.
func TestSuiteNotices(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "tc", "iperf3")
	if c, ok := suiteFaults[os.Getenv(suiteFault)]; ok {
		c.driver.Driver = bridge.New()
		c.part(t, c.driver)
		return
	}
	for fault, c := range suiteFaults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run", "^TestSuiteNotices$")
			cmd.Env = append(os.Environ(), suiteFault+"="+fault)
			out, err := cmd.CombinedOutput()
			if (err != nil) != (c.want != "") || !strings.Contains(string(out), c.want) {
				t.Errorf("the suite ends with %v, want %q in:\n%s", err, c.want, out)
			}
		})
	}
}
