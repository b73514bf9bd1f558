// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// socket is a server's listening socket.
type socket struct {
	proto string // "tcp" or "udp"
	port  uint16
}

// await returns once the program is ready; it fails if the program ends first, or
// exceeds its patience.
func await(ctx context.Context, server *program, ready func(*program) bool, patience time.Duration) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		if ready(server) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", server.name, ctx.Err())
		case <-server.finished:
			return fmt.Errorf("%s ended before it was ready (%v): %q", server.name, server.err, server.words())
		case <-limit.C:
			return fmt.Errorf("%s was not ready within %v: %q", server.name, patience, server.words())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// open reports whether the server's network namespace has the socket.
func (s socket) open(server *program) bool {
	if server.at.machine() {
		return s.listedIn(server.at)
	}
	return s.listed(server.cmd.Process.Pid)
}

// listed reads the socket tables of the process's network namespace.
func (s socket) listed(pid int) bool {
	for _, family := range []string{"", "6"} {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/net/" + s.proto + family)
		if err != nil {
			continue // without IPv6 there is no such table
		}
		found := s.in(f)
		f.Close()
		if found {
			return true
		}
	}
	return false
}

// in reports whether a table in the format of /proc/net/tcp or udp (proc(5)) has
// the socket: for TCP, in state LISTEN.
func (s socket) in(table io.Reader) bool {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err == nil && uint16(port) == s.port && (s.proto == "udp" || f[3] == "0A") {
			return true
		}
	}
	return false
}

// Servers get ports below the kernel's default range for clients
// (ip_local_port_range), so that no client takes one by chance.
const firstPort, lastPort = 20000, 32000

// freePorts returns n ports that are free for TCP and UDP in the endpoint's
// namespace.
func freePorts(e Endpoint, n int) ([]uint16, error) {
	var ports []uint16
	// A machine's addresses may exist only in its own kernel.
	free := func(port uint16) bool { return portFree(e.IP, port) }
	if e.machine() {
		free = func(port uint16) bool { return !socket{"tcp", port}.listedIn(e) && !socket{"udp", port}.listedIn(e) }
	}
	err := e.Place.Netns.Do(func() error {
		for try := 0; try < 100; try++ {
			port := uint16(firstPort + rand.IntN(lastPort-firstPort))
			if !free(port) {
				continue
			}
			if ports = append(ports, port); len(ports) == n {
				return nil
			}
		}
		return errors.New("no free port")
	})
	if err != nil {
		return nil, fmt.Errorf("port for a server at %s in %s: %w", e.IP, e.Name, err)
	}
	return ports, nil
}

// portFree tries the port in the thread's network namespace.
func portFree(ip netip.Addr, port uint16) bool {
	if ip.Is6() && ip.IsLinkLocalUnicast() {
		ip = netip.IPv6Unspecified() // it would take the interface too
	}
	addr := netip.AddrPortFrom(ip, port)
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return false
	}
	defer l.Close()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// receiverDrops counts the UDP datagrams dropped at full socket buffers since the
// namespace was made.
func receiverDrops(ctx context.Context, e Endpoint) (uint64, error) {
	if e.machine() {
		text, err := readInMachine(ctx, e, "/proc/net/snmp", "/proc/net/snmp6")
		return snmpRcvbufErrors(string(text)) + snmp6RcvbufErrors(string(text)), err
	}
	var drops uint64
	err := e.Place.Netns.Do(func() error {
		v4, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		drops = snmpRcvbufErrors(string(v4))
		if v6, err := os.ReadFile("/proc/thread-self/net/snmp6"); err == nil {
			drops += snmp6RcvbufErrors(string(v6))
		}
		return nil
	})
	return drops, err
}

// snmpRcvbufErrors finds the column in the format of /proc/net/snmp: a line of
// names followed by a line of values.
func snmpRcvbufErrors(text string) uint64 {
	var names []string
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "Udp:" {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for i, name := range names {
			if name == "RcvbufErrors" && i < len(f) {
				n, _ := strconv.ParseUint(f[i], 10, 64)
				return n
			}
		}
	}
	return 0
}

// snmp6RcvbufErrors finds the line in the format of /proc/net/snmp6.
func snmp6RcvbufErrors(text string) uint64 {
	for _, line := range strings.Split(text, "\n") {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "Udp6RcvbufErrors" {
			n, _ := strconv.ParseUint(f[1], 10, 64)
			return n
		}
	}
	return 0
}
