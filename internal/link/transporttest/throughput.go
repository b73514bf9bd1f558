// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/test/testenv"
)

// bulk is how many bytes testThroughput sends.
const bulk = 1 << 20

// testThroughput runs iperf3 over the link and logs the throughput; only a
// link that does not carry bulk within that time is an error.
func testThroughput(t *testing.T, d transport.Driver, o Options, within time.Duration) {
	testenv.Program(t, "iperf3")
	r := NewRig(t, d, o)
	r.Up()
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	from, to := r.stations[0], r.stations[1]

	server := exec.CommandContext(ctx, "iperf3", "--server", "--one-off", "--forceflush", "--bind", from.ip.String())
	out, err := server.StdoutPipe()
	testenv.Must(t, err)
	testenv.Must(t, (host.Place{Netns: from.ns}).Start(server))
	defer server.Wait() // the context kills it, or it has finished
	defer cancel()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "Server listening") {
			break
		}
	}
	arrives, stop := context.WithTimeout(context.Background(), within)
	defer stop()
	// The client of a reverse test ends when so much has arrived.
	client := exec.CommandContext(arrives, "iperf3", "--client", from.ip.String(), "--reverse", "--bytes", strconv.Itoa(bulk), "--json")
	var result bytes.Buffer
	client.Stdout = &result
	err = (host.Place{Netns: to.ns}).Start(client)
	if err == nil {
		err = client.Wait()
	}
	if err != nil {
		t.Fatalf("iperf3 gets no %d bytes over %s within %v: %v: %s", bulk, d.Name(), within, err, result.String())
	}
	var parsed struct {
		End struct {
			Received struct {
				Bytes         int     `json:"bytes"`
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	testenv.Must(t, json.Unmarshal(result.Bytes(), &parsed))
	if got := parsed.End.Received; got.Bytes < bulk {
		t.Errorf("iperf3 over %s: %d bytes of %d", d.Name(), got.Bytes, bulk)
	} else {
		t.Logf("iperf3 over %s: %.2f Gbit/s", d.Name(), got.BitsPerSecond/1e9)
	}
}
