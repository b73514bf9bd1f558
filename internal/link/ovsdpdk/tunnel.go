// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/ovsvxlan"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vhost"
	"github.com/drayage/dray/internal/spec/chain"
)

// NameTunnel is the name of the transport between hosts in a chain file.
const NameTunnel = "ovs-dpdk-vxlan"

// maxTunnelMTU is the longest L3 packet that passed in tests.
const maxTunnelMTU = 9000

// tunnel joins ports on different hosts by one switch per host, with VXLAN between them.
type tunnel struct{ driver }

// tunnelEnd is one host's part of a link between hosts.
type tunnelEnd struct {
	link transport.Spec // the whole link
	on   int            // index of the host in the link's hosts
}

// NewTunnel returns the driver between simulated hosts.
func NewTunnel() transport.Driver {
	caps := common
	caps.Faces, caps.Rank = []string{string(chain.FaceDPDK)}, 95
	caps.Tunnel, caps.Processes, caps.Copies = true, 4, 4 // two processes per host
	caps.MaxMTU = maxTunnelMTU
	caps.KernelPath = "virtio rings, ovs-vswitchd (VXLAN over UDP), packet socket, macvlan, underlay, the same back"
	caps.Note = "between simulated hosts, an Open vSwitch with DPDK on each, which keeps one CPU busy; UDP port 4789; it maps the packet memory of its host's applications, and reaches the underlay through a packet socket"
	d := tunnel{driver{ports: vhostPorts{}}}
	probe := transport.TryVersion(probe, d.ports.probe, host.ProbeMacvlan, probeAppctl)
	d.Definition = transport.Define(NameTunnel, caps, probe, func(s transport.Spec) (*transport.Build, error) { return d.build(s) })
	return d
}

func probeAppctl() error {
	_, err := lookup("ovs-appctl")
	return err
}

func (d tunnel) build(s transport.Spec) (*transport.Build, error) {
	if err := ovsvxlan.CheckAddresses(s); err != nil {
		return nil, err
	}
	build := transport.NewBuild()
	build.Report.Datapath = "netdev"
	for i, h := range s.Hosts {
		w := d.switchOn(s, i)
		build.Steps = append(build.Steps, s.CheckUnderlay(d.Name(), h), w.createDir(), w.createNamespaces(), ovsvxlan.Reach(d.Name(), s, i))
		d.ports.prepare(build, d.Name(), w.spec)
		build.Steps = append(build.Steps, w.steps(build.Report)...)
	}
	return build, nil
}

// Revive implements transport.Reviver, as for a link on one host. A restarted
// switch has lost its underlay address and its routes to the other hosts.
func (d tunnel) Revive(ctx context.Context, s transport.Spec, r *transport.Report) error {
	for i := range s.Hosts {
		if err := d.switchOn(s, i).revive(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// switchOn is the switch of host i. It has its own user, directory and control
// groups, and sees only its host's ports.
func (d tunnel) switchOn(s transport.Spec, i int) *ovsSwitch {
	part, all := s, vhost.HugePages(s)
	part.Link = s.Link + "@" + s.Hosts[i].Name
	own := fmt.Sprintf("host%d", i+1)
	part.Dir, part.Cgroup = filepath.Join(s.Dir, own), s.Cgroup.Child(own)
	if part.CPUs = nil; len(s.CPUs) >= len(s.Hosts) {
		part.CPUs = s.CPUs[i : i+1]
	}
	part.Ends = nil
	for _, e := range s.Ends {
		if e.Host == s.Hosts[i].Name {
			e.HugePages = all // the plan counts huge pages for all switches or for none
			part.Ends = append(part.Ends, e)
		}
	}
	w := d.newSwitch(part)
	w.tunnel = &tunnelEnd{link: s, on: i}
	w.direct = len(s.Ends) == 2 && s.Forwarding != chain.ForwardingLearning
	return w
}

// longestSleep is the longest sleep, in µs, between two polls with few
// packets, if the tunnel's switches have no CPU each.
const longestSleep = "50"

// sleep is the longest sleep of the switch's polling thread, in µs. Switches
// that busy-poll on one CPU would take turns of milliseconds each.
func (w *ovsSwitch) sleep() string {
	if w.tunnel != nil && len(w.spec.CPUs) == 0 {
		return longestSleep
	}
	return "0"
}

// named adds the host to a step's name.
func (w *ovsSwitch) named(what string) string {
	if w.tunnel == nil {
		return what
	}
	return what + " on " + w.tunnel.link.Hosts[w.tunnel.on].Name
}

// createDir is the step that creates the directory of the switch's part of the link.
func (w *ovsSwitch) createDir() step.Step {
	return step.Step{
		Name:  w.spec.StepName(w.driver, "create directory"),
		Makes: []step.Resource{host.DirResource(w.spec.Dir), host.CgroupResource(w.spec.Cgroup)},
		Do: func(context.Context) error {
			return host.MakeDir(w.spec.Dir, 0o711)
		},
	}
}

// portNames are the ports of the bridge, by OpenFlow number.
func (w *ovsSwitch) portNames() []string {
	var names []string
	for i := range w.spec.Ends {
		names = append(names, portName(i))
	}
	if t := w.tunnel; t != nil {
		names = slices.Concat(names, ovsvxlan.Ports(t.link, t.on))
	}
	return names
}

// tunnelPorts are arguments of ovs-vsctl that create the tunnel's bridge and ports.
func (w *ovsSwitch) tunnelPorts() ([]string, error) {
	t := w.tunnel
	if t == nil {
		return nil, nil
	}
	ports, err := ovsvxlan.AddPorts(t.link, t.on, bridge, len(w.spec.Ends)+1)
	return append(ovsvxlan.AddBridge(t.link, t.on, "netdev"), ports...), err
}

// findHosts sets the switch's underlay address and its routes to the other
// hosts. A newly started switch creates its bridges with a delay.
func (w *ovsSwitch) findHosts(ctx context.Context) error {
	t := w.tunnel
	if t == nil {
		return nil
	}
	if err := w.retry(ctx, func() error { return ovsvxlan.Address(t.link, t.on) }); err != nil {
		return err
	}
	return ovsvxlan.FindHosts(ctx, t.link, t.on, func(ctx context.Context, args ...string) (string, error) {
		return w.tool(ctx, "ovs-appctl", append([]string{"--target=" + inside + "/" + vswitchd + ".ctl"}, args...)...)
	})
}
