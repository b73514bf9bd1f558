// SPDX-License-Identifier: Apache-2.0

// Package native puts ports that libdray opens on links. It registers links
// with the chain's broker. It connects native ends to transports of network
// interfaces, by packet sockets on an interface hidden from the function. A
// dpdk end is also such a port, opened by the DPDK driver net_dray.
package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/dpdk"
)

// KindLink is a link (Name) that the broker of a directory (Path) serves.
const KindLink step.Kind = "broker-link"

// Removers removes the resources of Serve.
func Removers() step.Removers { return step.Removers{KindLink: removeLink} }

// removeLink removes the link from the broker. A broker that does not run
// serves nothing.
func removeLink(ctx context.Context, r step.Resource) error {
	client, err := broker.Dial(r.Path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err != nil {
		return err
	}
	return client.Remove(ctx, r.Name)
}

// Serve appends the steps that make the broker serve the link's native and dpdk ends, and
// check the result. kind is one of the broker's kinds. interfaces is the namespace of
// each native end's interface, by its index in s.Ends; nil for shared memory, whose ports
// queue what they send as the spec's qdiscs say. An error means that they cannot.
func Serve(b *transport.Build, driver string, s transport.Spec, kind string, interfaces map[int]host.Netns) error {
	l := Served(s, kind, interfaces)
	if kind == broker.KindShm {
		if err := SetClasses(&l, s); err != nil {
			return s.Refuse(driver, err)
		}
	}
	for _, e := range s.Ends {
		if e.Dpdk() {
			b.Report.Vdevs = append(b.Report.Vdevs, Device(e.Function, e.Name))
		}
	}
	if len(b.Report.Vdevs) > 0 {
		// Before anything is created: if a command cannot load it, that shows too late.
		find := step.Step{
			Name: s.StepName(driver, "find the DPDK driver"),
			Do: func(context.Context) error {
				_, err := dpdk.FindDriver()
				return err
			},
		}
		b.Steps = append([]step.Step{find}, b.Steps...)
	}
	check := step.Step{
		Name: s.StepName(driver, "check the ports' sockets"),
		Do:   func(context.Context) error { return checkSockets(l.Ends) },
	}
	if s.Move {
		// Last: an earlier failure leaves the link unchanged.
		b.Steps = append(b.Steps, check, step.Step{
			Name: s.StepName(driver, "broker: move the link"),
			Do: func(ctx context.Context) error {
				return ask(ctx, s.Broker, func(c *broker.Client) error { return c.Relink(ctx, l) })
			},
		})
		return nil
	}
	for _, e := range l.Ends {
		b.Keeps = append(b.Keeps, host.DirResource(e.Socket))
	}
	// Last, hence removed first: a running broker removes its sockets.
	b.Keeps = append(b.Keeps, step.Resource{Kind: KindLink, Path: s.Broker, Name: s.Link})
	b.Steps = append(b.Steps, step.Step{
		Name:  s.StepName(driver, "broker: serve the link"),
		Makes: b.Keeps,
		Do: func(ctx context.Context) error {
			return ask(ctx, s.Broker, func(c *broker.Client) error { return c.Add(ctx, l) })
		},
	}, check)
	return nil
}

// Device is how a DPDK application opens a port that the broker serves.
func Device(function, port string) transport.Vdev {
	return transport.Vdev{Function: function, Port: port, Driver: dpdk.NetDray, Options: "port=" + port}
}

// Served is the link in the broker's form.
func Served(s transport.Spec, kind string, interfaces map[int]host.Netns) broker.Link {
	l := broker.Link{Name: s.Link, Kind: kind, Node: s.Node, Machine: slices.ContainsFunc(s.Ends, transport.End.NativeInMachine)}
	if s.Messages != nil {
		l.MessageBytes, l.Messages = int(s.Messages.Size), s.Messages.Count
	}
	for i, e := range s.Ends {
		if !e.Brokered() {
			continue
		}
		end := broker.End{
			Function: e.Function, Port: e.Name, Socket: e.Socket, Owner: e.User,
			MAC: e.MAC, IP: e.IP, MTU: s.MTU, Queues: max(1, e.Queues),
		}
		if e.Hold != nil {
			end.HoldQuota, end.HoldPolicy = uint32(e.Hold.Packets), string(e.Hold.Beyond)
		}
		if ns, ok := interfaces[i]; ok {
			end.Netns, end.Interface = ns.Path, e.Name
		}
		l.Ends = append(l.Ends, end)
	}
	return l
}

// checkSockets checks that each port's user can open it, and nobody else.
func checkSockets(ends []broker.End) error {
	for _, e := range ends {
		var st unix.Stat_t
		if err := unix.Lstat(e.Socket, &st); err != nil {
			return fmt.Errorf("port %s of %s: socket %s: %w", e.Port, e.Function, e.Socket, err)
		}
		if st.Mode != unix.S_IFSOCK|0o600 || st.Uid != uint32(e.Owner) {
			return fmt.Errorf("port %s of %s: socket %s has mode %#o and belongs to uid %d, not to %d alone",
				e.Port, e.Function, e.Socket, st.Mode, st.Uid, e.Owner)
		}
	}
	return nil
}

// patience bounds the time until a broker that died runs again.
const patience = 30 * time.Second

// ask waits for the chain's broker, and calls it.
func ask(ctx context.Context, dir string, call func(*broker.Client) error) error {
	for deadline := time.Now().Add(patience); ; {
		client, err := broker.Dial(dir)
		if err == nil {
			return call(client)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no broker serves the chain's native ports: %w", err)
		}
		if err := host.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
