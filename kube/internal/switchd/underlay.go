// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/kube/internal/nodeswitch"
)

// underlay is the interface that carries tunnels.
type underlay struct {
	mac    net.HardwareAddr
	addr   netip.Addr
	mtu    int
	routes []route
}

// route is one of the kernel's through the interface.
type route struct {
	to  netip.Prefix
	via netip.Addr // not valid: directly
}

func readUnderlay(device string) (*underlay, error) {
	i, err := host.HostNetns.ReadLink(device)
	if err != nil {
		return nil, err
	}
	u := &underlay{mac: i.MAC, mtu: i.MTU}
	for _, p := range i.Addrs {
		if p.Addr().Is4() && !u.addr.IsValid() {
			u.addr = p.Addr()
		}
	}
	if !u.addr.IsValid() {
		return nil, fmt.Errorf("interface %s has no IPv4 address: tunnels need one", device)
	}
	table, err := os.ReadFile("/proc/self/net/route")
	if err != nil {
		return nil, err
	}
	u.routes = parseRoutes(string(table), device)
	return u, nil
}

// parseRoutes reads /proc/net/route: a heading, then interface, destination, gateway, flags, three
// numbers, and mask, addresses in hexadecimal as the machine stores them.
func parseRoutes(table, device string) (all []route) {
	for lines := bufio.NewScanner(strings.NewReader(table)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[0] != device {
			continue
		}
		to, okTo := storedAddr(f[1])
		via, okVia := storedAddr(f[2])
		mask, okMask := storedAddr(f[7])
		flags, err := strconv.ParseUint(f[3], 16, 32)
		if !okTo || !okVia || !okMask || err != nil || flags&unix.RTF_UP == 0 || flags&unix.RTF_REJECT != 0 {
			continue
		}
		bits, _ := net.IPMask(mask.AsSlice()).Size()
		r := route{to: netip.PrefixFrom(to, bits)}
		if flags&unix.RTF_GATEWAY != 0 {
			r.via = via
		}
		all = append(all, r)
	}
	return all
}

func storedAddr(text string) (netip.Addr, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 4 {
		return netip.Addr{}, false
	}
	var out [4]byte
	binary.NativeEndian.PutUint32(out[:], binary.BigEndian.Uint32(b))
	return netip.AddrFrom4(out), true
}

// room reports why a tunnel cannot carry packets of that MTU.
func (u *underlay) room(mtu int) error {
	if mtu+nodeswitch.Overhead > u.mtu {
		return fmt.Errorf("MTU %d: a tunnel between switches carries at most %d, as the network of pods has %d", mtu, u.mtu-nodeswitch.Overhead, u.mtu)
	}
	return nil
}

// mute has the kernel take no notice of packets for tunnels. It sees them as well as the switch does,
// and would answer that there is no such port.
func mute(port int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "tunnels")
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port})
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("UDP port %d: %w", port, err)
	}
	return f, nil
}
