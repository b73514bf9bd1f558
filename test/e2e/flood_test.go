// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/docker/dockertest"
)

// TestManyPacketsBetweenUnprivilegedContainers sends at full speed, and checks
// every packet's sums, number and order:
//
//	[ a: draygen send ]══shm══[ b: draygen sink ]
//
// The containers have no capability; with docker that is --cap-drop ALL.
// DRAY_TEST_PACKETS sets the number of packets: 1000000000 takes some minutes.
func TestManyPacketsBetweenUnprivilegedContainers(t *testing.T) {
	t.Parallel()
	packets := 2_000_000
	if text := os.Getenv("DRAY_TEST_PACKETS"); text != "" {
		var err error
		if packets, err = strconv.Atoi(text); err != nil || packets < 1 {
			t.Fatalf("DRAY_TEST_PACKETS=%s is not a number of packets", text)
		}
	}
	draygen := generator(t)
	for _, runtime := range []string{"runc", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			b := newBench(t)
			p := pair{Name: "flood", Runtime: runtime, Face: "native", Command: `[sleep, infinity]`}
			if runtime == "docker" {
				client := dockertest.Start(t)
				p.Image = "dray-e2e-flood"
				dockertest.Import(t, client, p.Image, draygen, "sleep", "grep")
				b.env = []string{"DOCKER_HOST=" + client.Host}
			}
			b.want(0, "up", b.file(p.yaml()))
			defer b.want(0, "down", "flood")
			for _, function := range []string{"a", "b"} {
				b.noCapabilities("flood", function)
			}
			b.flood("flood", draygen, packets)
		})
	}
}

// noCapabilities checks what a program in the function may do.
func (b *bench) noCapabilities(chain, function string) {
	b.t.Helper()
	r := b.want(0, "exec", chain, function, "--", "grep", "-E", "^Cap(Eff|Prm|Bnd)", "/proc/self/status")
	if strings.Count(r.Stdout, "0000000000000000") != 3 {
		b.t.Errorf("function %s has capabilities:\n%s", function, r.Stdout)
	}
}

// flood sends packets from a to b, and wants each to arrive once, whole and in order.
func (b *bench) flood(chain, draygen string, packets int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(packets)*5*time.Microsecond)
	defer cancel()
	sent := make(chan error, 1)
	go func() {
		sent <- b.command(ctx, "exec", chain, "a", "--", draygen, "send", "--port", "dray:p0", "--check",
			"--rate", "max", "--packets", strconv.Itoa(packets)).Run()
	}()
	sink := b.command(ctx, "exec", chain, "b", "--", draygen, "sink", "--port", "dray:p0", "--check", "--once", "--strict")
	out, err := sink.Output()
	if sendErr := <-sent; err != nil || sendErr != nil {
		b.t.Fatalf("sink: %v, sender: %v\n%s", err, sendErr, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var p struct {
		passed
		PerSecond float64 `json:"receive_pps"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &p); err != nil {
		b.t.Fatalf("the sink ends with %q: %v", lines[len(lines)-1], err)
	}
	if p.Received != packets || p.Lost+p.Corrupt+p.Duplicates+p.Reordered > 0 || p.Link.Kind != "shm" {
		b.t.Errorf("the sink saw %+[2]v of %[1]d packets", packets, p)
	}
	b.t.Logf("%d packets, each whole, once and in order, at %.2f Mpps", packets, p.PerSecond/1e6)
}
