// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// UDP sockets at both ends of a veth pair.
var (
	udpAddrs = [2]netip.Prefix{netip.MustParsePrefix("192.0.2.1/30"), netip.MustParsePrefix("192.0.2.2/30")}
	udpMACs  = [2]net.HardwareAddr{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	udpNames = [2]string{"dray-a", "dray-b"}
)

const (
	udpPort = 4000
	vethMTU = 1500
)

// overVeth opens two connected UDP sockets in new network namespaces, joined by a
// veth pair. The sockets keep the namespaces alive; the caller closes them.
func overVeth() (sockets [2]*os.File, err error) {
	err = host.InThrowawayNetns(func(a host.Netns) error {
		return host.InThrowawayNetns(func(b host.Netns) error {
			spaces := [2]host.Netns{a, b}
			if err := joinByVeth(spaces); err != nil {
				return err
			}
			for i, ns := range spaces {
				err := ns.Do(func() error {
					var err error
					sockets[i], err = udpSocket(udpAddrs[i].Addr(), udpAddrs[1-i].Addr())
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		for _, s := range sockets {
			_ = s.Close() // it may not have been opened
		}
	}
	return sockets, err
}

func joinByVeth(spaces [2]host.Netns) error {
	var ends [2]host.Iface
	for i, ns := range spaces {
		ends[i] = host.Iface{Netns: ns, Name: udpNames[i], MAC: udpMACs[i], MTU: vethMTU}
	}
	if err := host.CreateVeth(ends[0], ends[1]); err != nil {
		return err
	}
	for i, ns := range spaces {
		if err := ns.AddAddr(udpNames[i], udpAddrs[i]); err != nil {
			return err
		}
		if err := ns.SetUp(udpNames[i]); err != nil {
			return err
		}
	}
	return nil
}

func udpSocket(from, to netip.Addr) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("UDP socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), "udp")
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: udpPort, Addr: from.As4()}); err == nil {
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: udpPort, Addr: to.As4()})
	}
	if err != nil {
		_ = f.Close() // the first error counts
		return nil, fmt.Errorf("UDP socket from %s to %s: %w", from, to, err)
	}
	return f, nil
}
