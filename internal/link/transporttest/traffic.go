// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// patience bounds a packet's delay on a busy machine before it counts as lost.
var patience = testenv.Patient(30 * time.Second)

// Header lengths in bytes: IPv4 without options, IPv6, and UDP.
const (
	header4 = 20 + 8
	header6 = 40 + 8
)

// listenUDP opens a socket of the station on its own address.
func (s station) listenUDP(t *testing.T) *net.UDPConn {
	t.Helper()
	return listen(t, s.ns, netip.AddrPortFrom(s.ip, 0))
}

// listenAny opens a socket of the station that also receives broadcasts; port
// 0 takes any.
func (s station) listenAny(t *testing.T, port int) *net.UDPConn {
	t.Helper()
	return listen(t, s.ns, netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)))
}

func listen(t *testing.T, ns host.Netns, on netip.AddrPort) *net.UDPConn {
	t.Helper()
	network := "udp4"
	if on.Addr().Is6() {
		network = "udp6"
	}
	var conn *net.UDPConn
	err := ns.Do(func() (err error) {
		conn, err = net.ListenUDP(network, net.UDPAddrFromAddrPort(on))
		return err
	})
	if err != nil {
		t.Fatalf("UDP socket on %s: %v", on, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// hears reports whether anything arrives within that time.
func hears(t *testing.T, ear *net.UDPConn, within time.Duration) bool {
	t.Helper()
	testenv.Must(t, ear.SetReadDeadline(time.Now().Add(within)))
	_, _, err := ear.ReadFromUDPAddrPort(make([]byte, 100))
	return err == nil
}

// payload is n bytes, different at each call.
func payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.IntN(256))
	}
	return b
}

// sendUDP sends one datagram of that payload size from a to b, with the "do
// not fragment" bit set, and checks the received data. The first packets of a
// link may wait for address resolution, so it resends until patience ends.
func sendUDP(t *testing.T, a, b station, size int) {
	t.Helper()
	from, to := a.listenUDP(t), b.listenUDP(t)
	dontFragment(t, from)
	want := payload(size)
	buf := make([]byte, size+1)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if _, err := from.WriteToUDPAddrPort(want, to.LocalAddr().(*net.UDPAddr).AddrPort()); err != nil {
			t.Fatalf("send %d bytes from %s to %s: %v", size, a.ip, b.ip, err)
		}
		testenv.Must(t, to.SetReadDeadline(time.Now().Add(time.Second)))
		n, sender, err := to.ReadFromUDPAddrPort(buf)
		if err != nil {
			continue
		}
		if !bytes.Equal(buf[:n], want) || sender.Addr().Unmap() != a.ip {
			t.Errorf("%d bytes from %s arrived altered, or as from %s", size, a.ip, sender)
		}
		return
	}
	t.Errorf("%d bytes from %s never arrived at %s", size, a.ip, b.ip)
}

// refusedUDP checks that a datagram of that payload size is too long to be sent.
func refusedUDP(t *testing.T, a, b station, size int) {
	t.Helper()
	from := a.listenUDP(t)
	dontFragment(t, from)
	_, err := from.WriteToUDPAddrPort(payload(size), netip.AddrPortFrom(b.ip, 9))
	if !errors.Is(err, unix.EMSGSIZE) {
		t.Errorf("%d bytes from %s to %s: error %v, want \"message too long\"", size, a.ip, b.ip, err)
	}
}

func dontFragment(t *testing.T, conn *net.UDPConn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	testenv.Must(t, err)
	var setErr error
	err = raw.Control(func(fd uintptr) {
		if conn.LocalAddr().(*net.UDPAddr).IP.To4() != nil {
			setErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
		} else {
			setErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
		}
	})
	if err != nil || setErr != nil {
		t.Fatal(err, setErr)
	}
}

// sendTCP sends size bytes from a to b, checks them, and returns the time from
// the first byte received to the last.
func sendTCP(t *testing.T, a, b station, size int) time.Duration {
	t.Helper()
	took, err := transferTCP(a, b, payload(size))
	if err != nil {
		t.Fatalf("TCP from %s to %s: %v", a.ip, b.ip, err)
	}
	return took
}

func transferTCP(a, b station, data []byte) (time.Duration, error) {
	var listener net.Listener
	err := b.ns.Do(func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(b.ip, 0).String())
		return err
	})
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	sent := make(chan error, 1)
	go func() { sent <- writeTCP(a, listener.Addr().String(), data) }()
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	conn, err := listener.Accept()
	if err != nil {
		return 0, fmt.Errorf("accept: %w (sender: %v)", err, <-sent)
	}
	defer conn.Close()
	took, err := readTCP(conn, data)
	if err != nil {
		return 0, err
	}
	return took, <-sent
}

func writeTCP(a station, to string, data []byte) error {
	var conn net.Conn
	err := a.ns.Do(func() (err error) {
		// A literal address, so that the socket is created on this thread.
		d := net.Dialer{Timeout: patience, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(a.ip, 0))}
		conn, err = d.DialContext(context.Background(), "tcp", to)
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(3 * patience)); err != nil {
		return err
	}
	_, err = conn.Write(data)
	return err
}

func readTCP(conn net.Conn, want []byte) (time.Duration, error) {
	if err := conn.SetDeadline(time.Now().Add(3 * patience)); err != nil {
		return 0, err
	}
	hash, buf := sha256.New(), make([]byte, 1<<16)
	var first time.Time
	for {
		n, err := conn.Read(buf)
		if first.IsZero() {
			first = time.Now()
		}
		hash.Write(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if sum := sha256.Sum256(want); !bytes.Equal(hash.Sum(nil), sum[:]) {
		return 0, fmt.Errorf("the bytes received are not the bytes sent")
	}
	return time.Since(first), nil
}
