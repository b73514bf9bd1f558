// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// TestTraffic sends datagrams over a veth pair, and reads the counters of both ends.
func TestTraffic(t *testing.T) {
	testenv.Root(t)
	const datagrams = 5
	a := Iface{Netns: testNetns(t), Name: "f1u", MAC: mac(t, "02:00:00:00:00:0a"), MTU: 1500}
	b := Iface{Netns: testNetns(t), Name: "n3", MAC: mac(t, "02:00:00:00:00:0b"), MTU: 1500}
	must(t, a.Netns.DisableIPv6())
	must(t, b.Netns.DisableIPv6())
	must(t, CreateVeth(a, b))
	must(t, a.Netns.AddAddr(a.Name, netip.MustParsePrefix("192.0.2.1/24")))
	must(t, b.Netns.AddAddr(b.Name, netip.MustParsePrefix("192.0.2.2/24")))
	must(t, a.Netns.SetUp(a.Name))
	must(t, b.Netns.SetUp(b.Name))
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patient(time.Minute))
	defer cancel()
	must(t, a.Netns.WaitCarrier(ctx, a.Name))
	var listener net.PacketConn // so that b returns no ICMP
	must(t, b.Netns.Do(func() (err error) {
		listener, err = net.ListenPacket("udp", "192.0.2.2:9")
		return err
	}))
	defer listener.Close()
	must(t, a.Netns.Do(func() error {
		conn, err := net.Dial("udp", "192.0.2.2:9")
		if err != nil {
			return err
		}
		defer conn.Close()
		for range datagrams {
			if _, err := conn.Write(make([]byte, 1200)); err != nil {
				return err
			}
		}
		return nil
	}))
	read := func(i Iface) Traffic {
		all, err := i.Netns.ReadTraffic([]string{"none", i.Name})
		must(t, err)
		if len(all) != 1 || !all[i.Name].Carrier {
			t.Fatalf("%s: %+v", i, all)
		}
		return all[i.Name]
	}
	for {
		there, here := read(b), read(a)
		// The kernels may ask for each other's addresses at any time.
		if here.Sent == there.Received && here.Received == there.Sent && here.Sent.Bytes >= datagrams*1200 && here.Sent.Packets >= here.Received.Packets+datagrams {
			break
		}
		if err := Sleep(ctx, time.Millisecond); err != nil {
			t.Fatalf("here %+v, there %+v", here, there)
		}
	}
	must(t, b.Netns.SetDown(b.Name))
	all, err := a.Netns.ReadTraffic([]string{a.Name})
	must(t, err)
	if all[a.Name].Carrier {
		t.Errorf("without its peer: %+v", all)
	}
}
