// SPDX-License-Identifier: Apache-2.0

package vpp

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

var update = flag.Bool("update", false, "write the golden files anew")

func spec(ends, mtu, queues int) transport.Spec {
	s := transport.Spec{Chain: "c", Link: "f1u", Dir: "/run/dray/c/link/f1u", Cgroup: host.Cgroup{Path: "/dray/c/link-f1u"}, MTU: mtu}
	for i := range ends {
		name := fmt.Sprintf("p%d", i)
		s.Ends = append(s.Ends, transport.End{
			Function: fmt.Sprintf("f%d", i), Name: name, MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i + 1)},
			Queues: queues, Face: chain.FaceDPDK, User: 1000 + i, Netns: host.Netns{Path: "/run/dray/c/fn/" + name},
			Dir: "/run/dray/c/fn/" + name + "/links/" + name,
		})
	}
	return s
}

// learning is a spec whose switch goes by the addresses seen at each end.
func learning(s transport.Spec) transport.Spec {
	s.Forwarding = chain.ForwardingLearning
	return s
}

// direct is a spec whose switch ignores addresses.
func direct(s transport.Spec) transport.Spec {
	s.Forwarding = chain.ForwardingDirect
	return s
}

// TestConfiguration compares the configuration of VPP and the applications
// with the golden files; `go test -update` rewrites them.
func TestConfiguration(t *testing.T) {
	for _, c := range []struct {
		file   string
		driver transport.Driver
		spec   transport.Spec
	}{
		{"vhost-user-2", New(), spec(2, 1500, 1)},
		{"vhost-user-2", New(), direct(spec(2, 1500, 1))},
		{"vhost-user-2-learning", New(), learning(spec(2, 1500, 1))},
		{"vhost-user-3", New(), spec(3, 9000, 1)},
		{"memif-2", NewMemif(), spec(2, 1400, 2)},
		{"memif-2-learning", NewMemif(), learning(spec(2, 1400, 2))},
		{"memif-3", NewMemif(), spec(3, 1500, 1)},
	} {
		build, err := c.driver.Build(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		v := newSwitch(c.driver.(driver).kind, c.spec)
		var b strings.Builder
		fmt.Fprintf(&b, "# startup.conf\n%s\n# links.vpp\n%s\n# applications\n", startupConfig(3, v.kind.plugin()), v.commands())
		for _, d := range build.Report.Vdevs {
			fmt.Fprintf(&b, "%s.%s: %s,%s in %s, ends with the link %v\n", d.Function, d.Port, d.Driver, d.Options, d.Dir, d.EndsWithLink)
		}
		fmt.Fprintf(&b, "\n# container\n%s\n", strings.Join(v.engine(installation{root: "/srv/vpp", libs: "lib/x86_64-linux-gnu"}, nil).Args, " "))
		for _, bind := range v.engine(installation{root: "/srv/vpp", libs: "lib/x86_64-linux-gnu"}, nil).Binds {
			fmt.Fprintf(&b, "%s at %s, write %v\n", bind.Source, bind.Target, bind.Write)
		}
		golden := filepath.Join("testdata", c.file+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-golden +now):\n%s", c.file, diff)
		}
	}
}

// TestJoined: one direction of a cross-connect is not enough.
func TestJoined(t *testing.T) {
	two, three := newSwitch(memif{}, spec(2, 1500, 1)), newSwitch(memif{}, spec(3, 1500, 1))
	learns := newSwitch(memif{}, learning(spec(2, 1500, 1)))
	for _, c := range []struct {
		name string
		v    vppSwitch
		out  string
		ok   bool
	}{
		{"both", two, "l3 local0\nl2 xconnect memif1/0 memif2/0\nl2 xconnect memif2/0 memif1/0\n", true},
		{"one direction", two, "l3 local0\nl2 xconnect memif1/0 memif2/0\nl3 memif2/0\n", false},
		{"nothing", two, "", false},
		{"cross-connect instead of a bridge domain", learns, "l2 xconnect memif1/0 memif2/0\nl2 xconnect memif2/0 memif1/0\n", false},
		{"bridge domain of two", learns, "l2 bridge memif1/0 bd_id 1 shg 0\nl2 bridge memif2/0 bd_id 1 shg 0\n", true},
		{"bridge domain", three, "l2 bridge memif1/0 bd_id 1 shg 0\nl2 bridge memif2/0 bd_id 1 shg 0\nl2 bridge memif3/0 bd_id 1 shg 0\n", true},
		{"one is missing", three, "l2 bridge memif1/0 bd_id 1 shg 0\nl2 bridge memif3/0 bd_id 1 shg 0\n", false},
	} {
		if err := c.v.joined(c.out); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestProbe: if there is no VPP, the error uses the documentation's words.
func TestProbe(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(variable, "")
	if path, err := host.LookProgram(program); err == nil {
		t.Skipf("there is a %s", path)
	}
	for _, d := range []transport.Driver{New(), NewMemif()} {
		if item := d.Probe(context.Background()); item.Reason != "no vpp binary" || item.Fix == "" || item.Name != d.Name() {
			t.Errorf("%+v", item)
		}
	}
}
