// SPDX-License-Identifier: Apache-2.0

// Package afpacket joins a port to a host interface through a small relay
// process with two packet sockets. The host interface keeps its addresses and
// traffic, and need not support virtual interfaces.
package afpacket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "af-packet"

// New returns the driver. The relay is the running program itself, started
// again with the sub-command "relay". That program must pass it to RelayMain.
func New() transport.Driver {
	return transport.Define(Name, caps, transport.Try(probe, host.ProbeVeth), build)
}

var caps = transport.Interfaces(inventory.Caps{
	MinEnds:    1,
	MaxEnds:    1, // in addition to the uplink
	Uplink:     true,
	Rank:       60,
	Processes:  1,
	Copies:     4,
	KernelPath: "socket, veth, packet socket, relay, packet socket, host interface",
	Note:       "needs an uplink; segmentation and checksum offloads pass through the relay; the host itself cannot reach the port",
})

func probe() error {
	return host.InThrowawayNetns(func(ns host.Netns) error {
		s, err := openSocket(ns, "lo", nil)
		if err != nil {
			return lacksSockets(err)
		}
		return s.close()
	})
}

// lacksSockets turns the error of a kernel without packet sockets, or without their options, into a
// typed one.
func lacksSockets(err error) error {
	for _, lacks := range []error{unix.EAFNOSUPPORT, unix.ENOPROTOOPT, unix.EOPNOTSUPP} {
		if errors.Is(err, lacks) {
			return &host.Unsupported{Why: "a packet socket cannot be opened: " + err.Error(), What: Name, Fix: "use Linux 4.20 or later with CONFIG_PACKET", Cause: err}
		}
	}
	return err
}

func build(s transport.Spec) (*transport.Build, error) {
	port, uplink := s.Ports()[0], s.Uplinks()[0]
	r := relay{dir: filepath.Join(s.Dir, "relay"), cgroup: s.Cgroup.Child("relay-" + s.Link)}
	build := transport.NewBuild(
		s.CheckUplink(Name, uplink),
		s.CreateSwitchNetns(Name),
		s.CreatePort(Name, 0, port),
		step.Step{
			Name:  s.StepName(Name, "create cgroup"),
			Makes: []step.Resource{host.CgroupResource(r.cgroup)}, // including the relay
			Do:    func(context.Context) error { return r.cgroup.Create(host.Limits{}) },
		},
	)
	build.Steps = append(build.Steps, step.Step{
		Name:  s.StepName(Name, "start relay"),
		Makes: []step.Resource{host.DirResource(r.dir)},
		Do: func(ctx context.Context) error {
			build.Report.Engine = "dray relay"
			pid, err := r.start(ctx, uplink, s.SwitchPort(0), port.MAC)
			if err != nil {
				return err
			}
			return build.Watch("relay", pid)
		},
	})
	build.Finish(Name, s)
	build.Steps = append(build.Steps, s.AwaitSwitchPorts(Name))
	return build, nil
}

// relay is the process between the uplink and the port.
type relay struct {
	dir    string // created by start; holds the log
	cgroup host.Cgroup
}

// startTimeout bounds the time until the relay has opened its sockets.
const startTimeout = 30 * time.Second

// nestedEnv marks the relay's environment. A program without the sub-command
// must not start itself in an endless loop.
const nestedEnv = "DRAY_RELAY"

// start starts the relay, and returns its pid once it forwards frames.
func (r relay) start(ctx context.Context, uplink transport.End, port host.Iface, mac net.HardwareAddr) (pid int, err error) {
	if os.Getenv(nestedEnv) != "" {
		return 0, errors.New("this program was started as a relay, but does not run one: make its sub-command \"relay\" call afpacket.RelayMain")
	}
	program, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return 0, err
	}
	log, err := os.Create(r.log())
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(program, "relay", "--mac", mac.String(),
		"--uplink", uplink.Name, "--uplink-netns", uplink.Netns.Path,
		"--port", port.Name, "--port-netns", port.Netns.Path)
	cmd.Dir, cmd.Stderr = "/", log
	cmd.Env = append(os.Environ(), nestedEnv+"=1")
	// A separate session: the terminal's interrupt is only for dray.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	// The relay starts in the host's namespace, so that an empty path has the same meaning there.
	if err := (host.Place{Netns: host.HostNetns, Cgroup: r.cgroup}).Start(cmd); err != nil {
		return 0, fmt.Errorf("start relay: %w", err)
	}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(ready).ReadString('\n')
		said <- strings.TrimSpace(line)
		_ = cmd.Wait() // its log says how it ended
	}()
	select {
	case line := <-said:
		if line == readyLine {
			return cmd.Process.Pid, nil
		}
		return 0, fmt.Errorf("the relay ended at once: %s", r.lastWords())
	case <-time.After(startTimeout):
		return 0, fmt.Errorf("the relay is not ready after %s: %s", startTimeout, r.lastWords())
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (r relay) log() string { return filepath.Join(r.dir, "relay.log") }

func (r relay) lastWords() string {
	b, err := os.ReadFile(r.log())
	if err != nil || len(b) == 0 {
		return "it logged nothing"
	}
	return strings.TrimSpace(string(b))
}
