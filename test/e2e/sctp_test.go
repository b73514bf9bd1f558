// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// sctpChain is two functions and a link:
//
//	server, 10.57.0.1 ── n2 ── client, 10.57.0.2
//
// The server sends back what it gets. tshark knows no protocol on its port.
const sctpChain = `apiVersion: drayage/v1
kind: Chain
name: NAME
functions:
  - name: server
    runtime: RUNTIME
    sctp: MODE
    command: [perl, -e, 'use Socket; $| = 1; socket(S, AF_INET, SOCK_STREAM, 132) or die "socket: $!"; bind(S, sockaddr_in(7000, INADDR_ANY)) or die "bind: $!";
      listen(S, 5) or die "listen: $!"; print "ready\n"; while (accept(C, S)) { while (sysread(C, $b, 65536)) { syswrite(C, $b) or die "write: $!" } close C }']
    ports: [{name: n2, ip: 10.57.0.1/24}]
  - name: client
    runtime: RUNTIME
    sctp: MODE
    ports: [{name: n2, ip: 10.57.0.2/24}]
links:
  - {name: n2, ends: [server.n2, client.n2], transport: veth}
`

func sctpText(name, runtime, mode string) string {
	return strings.NewReplacer("NAME", name, "RUNTIME", runtime, "MODE", mode).Replace(sctpChain)
}

// sctpClient is a program that knows nothing of Drayage.
const sctpClient = `use Socket; socket(S, AF_INET, SOCK_STREAM, 132) or die "socket: $!"; connect(S, sockaddr_in(7000, inet_aton("10.57.0.1"))) or die "connect: $!";
for (1 .. 20) { syswrite(S, "message $_") or die "write: $!"; sysread(S, $b, 65536) or die "read: $!"; print "$b\n" } close S`

// chunks are the types of the chunks in a capture, each once, in order of their first packet.
func chunks(t *testing.T, c *capturing) []string {
	t.Helper()
	c.signal(syscall.SIGINT)
	c.end()
	file := filepath.Join(t.TempDir(), "n2.pcapng")
	if err := os.WriteFile(file, c.stdout.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	// A process that had no CPU may send again what was acknowledged meanwhile, which is no fault.
	if wrong := tshark(t, file, "_ws.malformed or (_ws.expert.severity >= 6291456 and not sctp.retransmitted_after_ack)", "frame.number", "_ws.expert.message"); wrong != "" {
		t.Errorf("tshark finds wrong packets:\n%s", wrong)
	}
	var types []string
	for _, chunk := range strings.FieldsFunc(tshark(t, file, "sctp", "sctp.chunk_type"), func(r rune) bool { return r == ',' || r == '\n' }) {
		if !slices.Contains(types, chunk) {
			types = append(types, chunk)
		}
	}
	return types
}

func TestSCTP(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ runtime, mode string }{{"process", "ip"}, {"process", "udp"}, {"runc", "udp"}} {
		t.Run(test.runtime+"-"+test.mode, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			testenv.Program(t, "tshark")
			b.env = append(b.env, "DRAY_LIB="+filepath.Dir(testenv.Built(t, "libdray_sctp.so")))
			name := fmt.Sprintf("sctp-%s-%s", test.runtime, test.mode)
			b.want(0, "up", b.file(sctpText(name, test.runtime, test.mode)))
			for end := time.Now().Add(patience); !strings.Contains(b.dray("logs", name, "server").Stdout, "ready"); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the server is not ready: %s", b.dray("logs", name, "server"))
				}
			}
			capture := b.capture(name, "client.n2")
			out := b.want(0, "exec", name, "client", "--", "perl", "-e", sctpClient)
			for i := 1; i <= 20; i++ {
				if !strings.Contains(out.Stdout, fmt.Sprintf("message %d\n", i)) {
					t.Errorf("message %d did not come back: %s", i, out)
				}
			}
			// INIT, INIT_ACK, COOKIE_ECHO, COOKIE_ACK, DATA, SACK, SHUTDOWN, SHUTDOWN_ACK, SHUTDOWN_COMPLETE
			got := chunks(t, capture)
			for _, chunk := range []string{"1", "2", "10", "11", "0", "3", "7", "8", "14"} {
				if !slices.Contains(got, chunk) {
					t.Errorf("no chunk of type %s among %v", chunk, got)
				}
			}
			b.want(0, "down", name)
		})
	}
}

// TestSCTPWithoutCapability refuses what could only fail later, and names what works.
func TestSCTPWithoutCapability(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	text := sctpText("sctp-refused", "runc", "ip")
	if host.ProbeSCTP() == nil {
		b.want(0, "plan", b.file(text))
		return
	}
	if r := b.want(3, "plan", b.file(text)); !strings.Contains(r.Stdout+r.Err, "sctp: udp") {
		t.Errorf("the plan does not name what works: %s", r)
	}
}
