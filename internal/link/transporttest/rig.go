// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

// Options describes a link under test; the zero value is two ports with an MTU
// of 1500.
type Options struct {
	Ports  int // default 2; default 1 with an uplink
	Uplink bool
	MTU    int // bytes of L3 packet
	IPv6   bool
	Queues int
	Shape  *chain.Qdisc
	Native []int         // ports that libdray opens, from 0
	Dpdk   []int         // ports that are devices of a DPDK application, from 0
	Apart  bool          // tunnel: each port is on its own host
	Rate   units.Bitrate // tunnel: rate of the underlay; 0: the machine's own
	Row    bool          // tunnel: each line joins a host to the next one only
	// Forwarding is the mode of a driver that supports several.
	Forwarding chain.Forwarding
	// Beside describes a link's changes to the host itself; nil: none.
	Beside func() string
}

// Rig is one link under test, in its own namespaces, cgroup and directory.
type Rig struct {
	Spec transport.Spec // Ports come first, then the uplink

	t        *testing.T
	driver   transport.Driver
	dir      string
	stations []station
	before   string // the state that must exist after the link is removed
	beside   func() string
	made     journal
	hosts    journal  // resources of the underlay
	broker   *serving // if a port is native
	vdevs    []transport.Vdev
}

// station can send and receive over the link: a port, or the outside world
// beyond an uplink.
type station struct {
	ns   host.Netns
	name string
	ip   netip.Addr
}

// journal stores the resources as JSON, like a journal on disk.
type journal [][]byte

func (j *journal) Append(resources ...step.Resource) error {
	for _, r := range resources {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		*j = append(*j, line)
	}
	return nil
}

func (j journal) resources(t *testing.T) []step.Resource {
	t.Helper()
	var all []step.Resource
	for _, line := range j {
		var r step.Resource
		testenv.Must(t, json.Unmarshal(line, &r))
		all = append(all, r)
	}
	return all
}

const (
	uplinkName  = "eth0"
	outsideName = "ext0"
)

// NewRig creates the namespaces; Up creates the link.
func NewRig(t *testing.T, d transport.Driver, o Options) *Rig {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "dray-test-")
	testenv.Must(t, err)
	r := &Rig{t: t, driver: d, dir: dir, beside: o.Beside}
	t.Cleanup(r.destroy)
	if err := os.Chmod(dir, 0o711); err != nil { // a switch may run as another user
		t.Fatal(err)
	}
	testenv.Must(t, os.Mkdir(filepath.Join(dir, "link"), 0o711))
	r.Spec = transport.Spec{
		Chain: filepath.Base(dir), Link: "f1u", Dir: filepath.Join(dir, "link"),
		Cgroup: host.Cgroup{Path: "/" + filepath.Base(dir)}, MTU: o.MTU, Shape: o.Shape, Forwarding: o.Forwarding,
	}
	if r.Spec.MTU == 0 {
		r.Spec.MTU = defaultMTU
	}
	testenv.Must(t, r.Spec.Cgroup.Create(host.Limits{}))
	if o.Ports == 0 {
		o.Ports = 2
		if o.Uplink {
			o.Ports = 1
		}
	}
	if len(o.Native) > 0 || len(o.Dpdk) > 0 && libdray(d) {
		r.startBroker()
	}
	for i := range o.Ports {
		r.addPort(i, o)
	}
	if o.Uplink {
		r.addUplink(o)
	}
	if d.Caps().Tunnel {
		r.addHosts(o)
	}
	r.before = r.state()
	return r
}

func (r *Rig) addPort(i int, o Options) {
	r.t.Helper()
	ns, name := host.Netns{Path: filepath.Join(r.dir, fmt.Sprintf("f%d.net", i))}, "f1u"
	if r.driver.Caps().SameNetns {
		ns, name = host.Netns{Path: filepath.Join(r.dir, "f0.net")}, fmt.Sprintf("f1u%d", i)
	}
	if !ns.Exists() {
		testenv.Must(r.t, host.CreateNetns(ns.Path))
	}
	end := transport.End{Netns: ns, Name: name, MAC: mac(i), IP: address(i, o.IPv6), Queues: max(1, o.Queues)}
	if slices.Contains(o.Native, i) {
		r.makeNative(&end, i)
	}
	if slices.Contains(o.Dpdk, i) {
		r.makeDpdk(&end, i)
	}
	r.Spec.Ends = append(r.Spec.Ends, end)
	r.stations = append(r.stations, station{ns: ns, name: name, ip: end.IP.Addr()})
}

// addUplink creates two namespaces: one acts as the host, with an interface
// eth0; one acts as the outside world, at the other end of its cable.
func (r *Rig) addUplink(o Options) {
	r.t.Helper()
	hostNs := host.Netns{Path: filepath.Join(r.dir, "host.net")}
	outside := host.Netns{Path: filepath.Join(r.dir, "outside.net")}
	inner := host.Iface{Netns: hostNs, Name: uplinkName, MAC: mac(100), MTU: r.Spec.MTU}
	outer := host.Iface{Netns: outside, Name: outsideName, MAC: outsideMAC, MTU: r.Spec.MTU}
	for _, do := range []func() error{
		func() error { return host.CreateNetns(hostNs.Path) },
		func() error { return host.CreateNetns(outside.Path) },
		func() error { return host.CreateVeth(inner, outer) },
		func() error { return hostNs.AddAddr(uplinkName, address(100, o.IPv6)) },
		func() error { return outside.AddAddr(outsideName, address(101, o.IPv6)) },
		func() error { return hostNs.SetUp(uplinkName) },
		func() error { return outside.SetUp(outsideName) },
	} {
		testenv.Must(r.t, do())
	}
	r.Spec.Ends = append(r.Spec.Ends, transport.End{Netns: hostNs, Name: uplinkName, Uplink: true})
	r.stations = append(r.stations, station{ns: outside, name: outsideName, ip: address(101, o.IPv6).Addr()})
}

// outsideMAC is the address of the outside world.
var outsideMAC = mac(101)

func mac(i int) net.HardwareAddr { return net.HardwareAddr{2, 0xda, 0, 0, 0, byte(i + 1)} }

func address(i int, ipv6 bool) netip.Prefix {
	if ipv6 {
		return netip.MustParsePrefix(fmt.Sprintf("fd00:da::%d/64", i+1))
	}
	return netip.MustParsePrefix(fmt.Sprintf("192.0.2.%d/24", i+1))
}

// build builds the spec, which must succeed.
func (r *Rig) build() *transport.Build {
	r.t.Helper()
	b, err := r.driver.Build(r.Spec)
	if err != nil {
		r.t.Fatalf("Build: %v", err)
	}
	r.vdevs = b.Report.Vdevs
	return b
}

// Up creates the link, which must succeed.
func (r *Rig) Up() *transport.Report {
	r.t.Helper()
	b := r.build()
	if err := r.run(context.Background(), b.Steps, nil); err != nil {
		r.t.Fatalf("set-up: %v%s", err, r.logs())
	}
	return b.Report
}

// setupTimeout bounds a set-up on a busy machine.
const setupTimeout = 2 * time.Minute

// run executes the steps as the product does.
func (r *Rig) run(ctx context.Context, steps []step.Step, fault Fault) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	runner := step.Runner{Journal: &r.made, Removers: transport.AllRemovers(r.driver), Fault: fault}
	return runner.Run(ctx, steps)
}

// Remove undoes the link from the journal alone.
func (r *Rig) Remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	runner := step.Runner{Removers: transport.AllRemovers(r.driver)}
	return runner.Remove(ctx, r.made.resources(r.t))
}

// destroy removes everything, even if the test has failed half-way.
func (r *Rig) destroy() {
	if err := r.Remove(); err != nil {
		r.t.Errorf("remove link: %v", err)
	}
	r.stopBroker()
	rest := []step.Resource{host.DirResource(r.dir)}
	points, err := host.MountsAt(r.dir)
	if err != nil {
		r.t.Error(err)
	}
	for _, point := range points {
		rest = append(rest, host.NamespaceResource(point))
	}
	rest = append(rest, host.CgroupResource(r.Spec.Cgroup))
	runner := step.Runner{Removers: host.Removers()}
	if err := runner.Remove(context.Background(), rest); err != nil {
		r.t.Errorf("remove rig: %v", err)
	}
	testenv.Must(r.t, host.DropShortDirs(r.dir))
}

// logs returns the logs of the link's processes.
func (r *Rig) logs() string {
	text := ""
	_ = filepath.WalkDir(r.Spec.Dir, func(path string, _ os.DirEntry, _ error) error {
		if filepath.Ext(path) == ".log" {
			b, _ := os.ReadFile(path)
			text += "\n" + path + ":\n" + string(b)
		}
		return nil
	})
	return text
}
