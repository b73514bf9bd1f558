// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// emptyCapture is a capture file without packets: the header of pcap, Ethernet.
const emptyCapture = "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x01\x00\x00\x00"

// tunnels runs programs in sequence on packet files, so that speed does not
// matter.
type tunnels struct {
	t   *testing.T
	dir string
}

// run starts one program of this project with a device for each pair of files, in
// and out, and returns its last output line.
func (p tunnels) run(argv []string, files ...string) map[string]any {
	p.t.Helper()
	eal := []string{"--no-huge", "--no-shconf", "-m", "64", "--no-pci", "--no-telemetry", "--log-level", "error"}
	for i := 0; i+1 < len(files); i += 2 {
		eal = append(eal, "--vdev", "net_pcap"+strconv.Itoa(i/2)+",rx_pcap="+p.path(files[i])+",tx_pcap="+p.path(files[i+1]))
	}
	var full []string
	for _, arg := range argv {
		switch arg {
		case "EAL":
			full = append(full, eal...)
		case "EAL in one":
			full = append(full, strings.Join(eal, " "))
		default:
			full = append(full, arg)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, testenv.Built(p.t, full[0]), full[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("%q: %v\n%s%s", full, err, out, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := map[string]any{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		p.t.Fatalf("%q: %v: %s", full, err, out)
	}
	return last
}

// path returns the path of a packet file, created if missing.
func (p tunnels) path(name string) string {
	path := filepath.Join(p.dir, name)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		if err := os.WriteFile(path, []byte(emptyCapture), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	return path
}

// want compares the generator's counts.
func (p tunnels) want(what string, got map[string]any, packets, frame int) {
	p.t.Helper()
	for name, want := range map[string]int{"received": packets, "received_bytes": packets * frame, "foreign": 0, "corrupt": 0, "duplicates": 0, "reordered": 0} {
		if got[name] != float64(want) {
			p.t.Errorf("%s: %s is %v, want %d", what, name, got[name], want)
		}
	}
}

// TestTunnelsThereAndBack sends packets of many users through a function. A
// reflector behind it answers, and the answers come back through the function:
//
//	draygen send ── one side ── dray-vnf ── other side ── draygen sink --reflect
//	draygen ping ── one side ── dray-vnf ── other side ──┘
func TestTunnelsThereAndBack(t *testing.T) {
	t.Parallel()
	const packets, users = 300, 100
	for name, c := range map[string]struct {
		vnf               []string
		encap             []string
		port              int // where the senders are
		sent, there, back int // lengths of frames, bytes without FCS
	}{
		"bng":   {[]string{"bng"}, []string{"--encap", "qinq:s=1,c=1"}, 0, 104, 128, 104},
		"core":  {[]string{"bng"}, []string{"--encap", "gre-mpls:label=3,key=0,from=198.18.1.2,to=198.18.1.1"}, 1, 128, 104, 128},
		"upf":   {[]string{"gtpu"}, []string{"--encap", "gtpu:teid=1,from=198.18.0.2,to=198.18.0.1,pdu=up,qfi=9", "--spread", "from"}, 0, 104, 60, 104},
		"gnb":   {[]string{"gtpu", "--role", "gnb"}, []string{"--spread", "from"}, 1, 60, 104, 60},
		"plain": {[]string{"gtpu", "--plain"}, []string{"--encap", "gtpu:teid=1,from=198.18.0.2,to=198.18.0.1", "--spread", "from"}, 0, 96, 60, 96},
	} {
		t.Run(name, func(t *testing.T) {
			p := tunnels{t, t.TempDir()}
			through := func(from, to string, port, count int) {
				files := []string{from, "unused", "nothing", to}
				if port == 1 {
					files = []string{"nothing", to, from, "unused"}
				}
				argv := append([]string{"dray-vnf", "EAL", "--"}, c.vnf...)
				got := p.run(append(argv, "--packets", strconv.Itoa(count)), files...)
				if got["sent"] != float64(count) {
					t.Fatalf("for %d packets from %s: %v", count, from, got)
				}
			}
			common := []string{"--port", "dpdk:net_pcap0", "--eal", "EAL in one", "--stream", "7"}
			send := append(append([]string{"draygen-dpdk", "send"}, common...), "--packets", strconv.Itoa(packets), "--rate", "max", "--flows", strconv.Itoa(users),
				"--burst", "1", "--from", "10.60.0.1", "--to", "203.0.113.9:5010", "--size", strconv.Itoa(c.sent), "--strict")
			p.run(append(send, c.encap...), "nothing", "sent")
			const ends = 8
			through("sent", "there", c.port, packets+ends)
			sink := append(append([]string{"draygen-dpdk", "sink"}, common...), "--reflect", "--once", "--strict")
			got := p.run(sink, "there", "turned")
			p.want("there", got, packets, c.there)
			reflected, _ := got["reflected"].(float64) // and at least one packet that marks the end
			through("turned", "back", 1-c.port, int(reflected))
			// All answers are there before it asks for the first time.
			ping := append(append([]string{"draygen-dpdk", "ping"}, common...), "--packets", "1", "--timeout", "1ms")
			p.want("back", p.run(ping, "back", "asked"), packets, c.back)
		})
	}
}
