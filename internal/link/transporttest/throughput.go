// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/test/testenv"
)

// slowest is less than a link carries in a second on a machine that is busy with all other
// tests, in bit/s.
const slowest = 2e6

// testThroughput runs iperf3 over the link and logs the throughput; only a
// link that carries almost nothing is an error.
func testThroughput(t *testing.T, d transport.Driver, o Options) {
	testenv.Program(t, "iperf3")
	r := NewRig(t, d, o)
	r.Up()
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	from, to := r.stations[0], r.stations[1]

	server := exec.CommandContext(ctx, "iperf3", "--server", "--one-off", "--forceflush", "--bind", to.ip.String())
	out, err := server.StdoutPipe()
	testenv.Must(t, err)
	testenv.Must(t, (host.Place{Netns: to.ns}).Start(server))
	defer server.Wait() // the context kills it, or it has finished
	defer cancel()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "Server listening") {
			break
		}
	}
	client := exec.CommandContext(ctx, "iperf3", "--client", to.ip.String(), "--time", "1", "--json")
	var result bytes.Buffer
	client.Stdout = &result
	testenv.Must(t, (host.Place{Netns: from.ns}).Start(client))
	if err := client.Wait(); err != nil {
		t.Fatalf("iperf3: %v: %s", err, result.String())
	}
	var parsed struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	testenv.Must(t, json.Unmarshal(result.Bytes(), &parsed))
	rate := parsed.End.Received.BitsPerSecond
	t.Logf("iperf3 over %s: %.2f Gbit/s", d.Name(), rate/1e9)
	if rate < slowest {
		t.Errorf("iperf3 over %s: %.0f bit/s, which no working link is as slow as", d.Name(), rate)
	}
}
