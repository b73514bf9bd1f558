// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// Addresses of examples/gtp-core.yaml.
const (
	ggsnAddress   = "10.55.0.1"
	sgsnAddress   = "10.55.0.2"
	serverAddress = "203.0.113.1" // behind the GGSN
	mobileAddress = "172.20.0.1"  // behind the SGSN
)

// newGTPBench needs Debian's GSNs and tshark.
func newGTPBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	testenv.Program(t, "osmo-ggsn", "sgsnemu", "tshark", "ethtool")
	return b
}

// startGTP brings the example up with this name and transport, and waits until packets
// pass the tunnel.
func startGTP(t *testing.T, b *bench, chain, transport string) {
	t.Helper()
	text, err := os.ReadFile(example("gtp-core.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	changes := []string{"name: gtp-core", "name: " + chain, "    requires:", "    transport: " + transport + "\n    requires:"}
	if strings.HasSuffix(transport, "vxlan") {
		changes = append(changes, "functions:\n", "hosts: {names: [core, site], underlay: {mtu: 1700}}\nfunctions:\n",
			"- name: ggsn\n", "- name: ggsn\n    host: core\n", "- name: sgsn\n", "- name: sgsn\n    host: site\n")
	}
	b.want(0, "up", b.file(edited(t, string(text), changes...)))
	for end := time.Now().Add(patience); b.dray("exec", chain, "sgsn", "--", "ping", "-qc1", "-W1", serverAddress).Code != 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no packet passes the tunnel within %v\nGGSN: %s\nSGSN: %s", patience, b.dray("logs", chain, "ggsn"), b.dray("logs", chain, "sgsn"))
		}
	}
}

// gtpPacket is a captured packet of a tunnel, as tshark understands it.
type gtpPacket struct {
	from, teid string // of the outer header
	inner      string // source and destination in the tunnel
	protocols  string
}

// dissected ends a capture, wants nothing in it that tshark complains about, and
// returns the packets in tunnels.
func dissected(t *testing.T, c *capturing) (packets []gtpPacket) {
	t.Helper()
	c.signal(syscall.SIGINT)
	c.end()
	file := filepath.Join(t.TempDir(), "gn.pcapng")
	if err := os.WriteFile(file, c.stdout.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if wrong := tshark(t, file, "_ws.malformed or _ws.expert.severity >= 6291456", "frame.number", "_ws.expert.message"); wrong != "" {
		t.Errorf("tshark finds wrong packets:\n%s", wrong)
	}
	text := tshark(t, file, "gtp.message == 0xff", "ip.src", "ip.dst", "gtp.teid", "frame.protocols")
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 4 || !strings.Contains(f[0], ",") || !strings.Contains(f[1], ",") {
			t.Fatalf("tshark sees no packet in a tunnel: %q", line)
		}
		from, to := strings.Split(f[0], ","), strings.Split(f[1], ",")
		packets = append(packets, gtpPacket{from: from[0], teid: f[2], inner: from[1] + " " + to[1], protocols: f[3]})
	}
	return packets
}

// tshark prints fields of the packets that a filter takes. The severity of a warning is
// 6291456.
func tshark(t *testing.T, file, filter string, fields ...string) string {
	t.Helper()
	// draygen's payloads are not those of any protocol that tshark guesses from them.
	argv := []string{"-n", "-r", file, "-d", "udp.port==5010,data", "-Y", filter, "-T", "fields"}
	for _, f := range fields {
		argv = append(argv, "-e", f)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("tshark", argv...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v: %s", err, stderr.String())
	}
	return string(out)
}

// count is how many packets came from an outer address, with these inner ones.
func count(packets []gtpPacket, from, inner, protocol string) (n int) {
	for _, p := range packets {
		if p.from == from && p.inner == inner && strings.HasSuffix(p.protocols, protocol) {
			n++
		}
	}
	return n
}

// TestGTPOverEveryKernelTransport pings through a tunnel between a GGSN and an SGSN that
// know nothing of Drayage. The longer packets fill the link.
func TestGTPOverEveryKernelTransport(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"veth", "bridge", "macvlan", "vepa", "ovs", "vxlan", "ovs-vxlan"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			b := newGTPBench(t)
			chain := "gtp-" + transport
			startGTP(t, b, chain, transport)
			capture := b.capture(chain, "ggsn.gn")
			const pings = 20
			for _, size := range []string{"56", "1472"} {
				b.want(0, "exec", chain, "sgsn", "--", "ping", "-qnM", "do", "-c", strconv.Itoa(pings), "-i", "0.01", "-W", "5", "-s", size, serverAddress)
			}
			packets := dissected(t, capture)
			for from, inner := range map[string]string{sgsnAddress: mobileAddress + " " + serverAddress, ggsnAddress: serverAddress + " " + mobileAddress} {
				if n := count(packets, from, inner, "gtp:ip:icmp:data"); n != 2*pings {
					t.Errorf("%d packets from %s, want %d", n, from, 2*pings)
				}
			}
			b.want(0, "down", chain)
		})
	}
}

// peer is a program of ours in place of one GSN's user plane, and what it talks to.
type peer struct {
	replaced, other       string // functions: the former's GSN is stopped meanwhile
	role                  string // of dray-vnf
	address, otherAddress string // of the tunnel
	inner, otherInner     string
}

var peers = []peer{
	{"sgsn", "ggsn", "gnb", sgsnAddress, ggsnAddress, mobileAddress, serverAddress},
	{"ggsn", "sgsn", "upf", ggsnAddress, sgsnAddress, serverAddress, mobileAddress},
}

// TestGTPOfOursWithTheirs sends draygen's packets, in its own GTP-U and in dray-vnf's,
// to each GSN in place of the other one. A sink behind the GSN answers, and the GSN's own
// GTP-U is read:
//
//	draygen ping ═════════════════════ gn ═══ GSN ─── draygen sink --reflect
//	draygen's file ── dray-vnf gtpu ═══ gn ═══ GSN ─── draygen sink --reflect
func TestGTPOfOursWithTheirs(t *testing.T) {
	t.Parallel()
	needDPDK(t)
	b := newGTPBench(t)
	const chain = "gtp-ours"
	startGTP(t, b, chain, "veth")
	for _, p := range peers {
		here, there := p.teids(t, b, chain)
		resume := b.pauseGSN(t, chain, p.replaced)
		t.Run("draygen as "+p.replaced, func(t *testing.T) { p.draygen(t, b.in(t), chain, there) })
		t.Run("dray-vnf as "+p.replaced, func(t *testing.T) { p.vnf(t, b.in(t), chain, here, there) })
		resume()
	}
	b.want(0, "down", chain)
}

// in is the same bench for a part of the test.
func (b *bench) in(t *testing.T) *bench { return &bench{t: t, state: b.state, env: b.env} }

// teids are those of packets to the replaced GSN, and of packets to the other one, as a
// ping shows them.
func (p peer) teids(t *testing.T, b *bench, chain string) (here, there string) {
	t.Helper()
	capture := b.capture(chain, "ggsn.gn")
	b.want(0, "exec", chain, "sgsn", "--", "ping", "-qnc1", "-W5", serverAddress)
	for _, packet := range dissected(t, capture) {
		teid, err := strconv.ParseUint(packet.teid, 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		if packet.from == p.address {
			there = strconv.FormatUint(teid, 10)
		} else {
			here = strconv.FormatUint(teid, 10)
		}
	}
	return here, there
}

// pauseGSN stops the GSN, so that its packets are not handled twice.
func (b *bench) pauseGSN(t *testing.T, chain, function string) (resume func()) {
	t.Helper()
	pid := functionPID(t, b, chain, function)
	if pid == 0 {
		t.Fatalf("%s does not run", function)
	}
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(pid, s); err != nil {
			t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	return func() { signal(syscall.SIGCONT) }
}

// mac is the address of a function's port gn.
func (b *bench) mac(chain, function string) string {
	b.t.Helper()
	links := decode[[]struct{ Address string }](b.t, b.want(0, "exec", chain, function, "--", "ip", "-j", "link", "show", "gn"))
	return links[0].Address
}

// wire is EAL's device on the port gn of the function that a program runs in.
const wire = "--no-huge --no-shconf -m 64 --no-pci --no-telemetry --log-level error --vdev net_af_packet0,iface=gn"

// asked is how many packets go through a tunnel: not so many that a socket's buffer is full.
const asked = 100

// draygen pings the other GSN's inner address.
func (p peer) draygen(t *testing.T, b *bench, chain, there string) {
	sink := p.sink(t, b, chain)
	capture := p.capture(b, chain)
	r := b.want(0, "exec", chain, p.replaced, "--", testenv.Built(t, "draygen-dpdk"), "ping", "--port", "dpdk:net_af_packet0", "--eal", wire,
		"--to-mac", b.mac(chain, p.other), "--encap", "gtpu:teid="+there+",from="+p.address+",to="+p.otherAddress,
		"--from", p.inner, "--to", p.otherInner+":5010", "--size", "200", "--packets", strconv.Itoa(asked), "--rate", "1kpps", "--timeout", "5s", "--catch-up", "60s")
	wantAll(t, "the ping", r.Stdout)
	wantAll(t, "the sink", sink())
	p.wantTunnel(t, dissected(t, capture))
}

// vnf sends packets of a file through dray-vnf to the other GSN's inner address. What
// comes back is in another file.
func (p peer) vnf(t *testing.T, b *bench, chain, here, there string) {
	files := tunnels{t, t.TempDir()}
	common := []string{"--port", "dpdk:net_pcap0", "--eal", "EAL in one", "--stream", "7"}
	files.run(slices.Concat([]string{"draygen-dpdk", "send"}, common, []string{"--packets", strconv.Itoa(asked), "--rate", "max", "--burst", "1",
		"--from", p.inner, "--to", p.otherInner + ":5010", "--size", "200"}), "nothing", "sent")
	// A packet socket gets datagrams on veth without the checksum that a NIC would put in.
	b.want(0, "exec", chain, p.other, "--", "ethtool", "-K", "gn", "tx", "off")
	sessions := files.path("sessions")
	mobileSide := strings.Join([]string{mobileAddress, here, there, p.otherAddress, "0\n"}, " ")
	if err := os.WriteFile(sessions, []byte(mobileSide), 0o600); err != nil {
		t.Fatal(err)
	}
	sink := p.sink(t, b, chain)
	capture := p.capture(b, chain)
	argv := slices.Concat([]string{"exec", chain, p.replaced, "--", testenv.Built(t, "dray-vnf")}, strings.Fields(wire),
		[]string{"--vdev", "net_pcap0,rx_pcap=" + files.path("sent") + ",tx_pcap=" + files.path("back"), "--", "gtpu", "--plain", "--role", p.role,
			"--sessions", sessions, "--ip", "0=" + p.address, "--next-hop", "0=" + b.mac(chain, p.other), "--duration", "3s"})
	report := b.want(0, argv...)
	wantAll(t, "the sink", sink())
	p.wantTunnel(t, dissected(t, capture))
	got := files.run(slices.Concat([]string{"draygen-dpdk", "ping"}, common, []string{"--packets", "1", "--timeout", "1ms"}), "back", "asks")
	if got["received"] != float64(asked) || got["corrupt"] != float64(0) {
		t.Errorf("%v of %d packets came back through dray-vnf, %v of them corrupt: %s", got["received"], asked, got["corrupt"], report)
	}
}

// sink starts a reflecting sink at the other GSN's inner address; the result stops it, and
// returns its counts.
func (p peer) sink(t *testing.T, b *bench, chain string) (stop func() string) {
	t.Helper()
	cmd := exec.Command("nsenter", "--net="+b.netns(chain, p.other), testenv.Built(t, "draygen"), "sink", "--reflect", "--port", "udp:"+p.otherInner+":5010")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // of a test that fails before
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("the sink is not ready: %v: %s", err, line)
	}
	return func() string {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		line, err := lines.ReadString('\n')
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			t.Errorf("the sink ends with %q: %v", line, err)
		}
		return line
	}
}

// capture sees what arrives at the other GSN, and what it sends: DPDK's packet sockets
// pass by the captures on their own side.
func (p peer) capture(b *bench, chain string) *capturing { return b.capture(chain, p.other+".gn") }

// wantAll compares the last line of a program with what was sent.
func wantAll(t *testing.T, who, output string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(output), "\n")
	var got struct{ Received, Corrupt, Duplicates, Lost int }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatalf("%s: %v: %s", who, err, output)
	}
	if got.Received != asked || got.Corrupt+got.Duplicates+got.Lost != 0 {
		t.Errorf("%s: %+v, want %d received", who, got, asked)
	}
}

// wantTunnel wants each packet in the tunnel, there and back, and nothing else in it but
// the ends that a sender announces. It does not wait for what answers them.
func (p peer) wantTunnel(t *testing.T, packets []gtpPacket) {
	t.Helper()
	there, back := count(packets, p.address, p.inner+" "+p.otherInner, "gtp:ip:udp:data"), count(packets, p.otherAddress, p.otherInner+" "+p.inner, "gtp:ip:udp:data")
	if there < asked+endsFewest || there > asked+endsMost || back < asked || back > asked+endsMost || there+back != len(packets) {
		t.Errorf("%d packets there and %d back, of %d in tunnels; want %d there and back, an end there, and no others", there, back, len(packets), asked)
	}
}
