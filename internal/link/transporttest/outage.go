// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/test/testenv"
)

// outageRate is the load during an outage, in packets/s. The sink reports each outageTick
// how many arrived.
const (
	outageRate = 20000
	outageTick = 200 * time.Millisecond
)

// testOutage kills a link's switch under load, has it restarted, and prints
// how long no packets passed. Both applications must continue to run.
func testOutage(t *testing.T, d transport.Driver, program string, o Options) {
	reviver, ok := d.(transport.Reviver)
	if !ok {
		t.Skip("the link has no process that could be started again")
	}
	r := NewRig(t, d, o)
	report := r.Up()
	if slices.ContainsFunc(report.Vdevs, func(v transport.Vdev) bool { return v.EndsWithLink }) {
		t.Skip("its devices find no new switch: a supervisor restarts the applications, see TestFaults of test/e2e")
	}
	receiver, sink, sinkEnd := r.startRole(program, 1, "sink", "--once", "--interval", outageTick.String(), "--duration", fmt.Sprintf("%.0fs", longestRole.Seconds()))
	sender, send, sendEnd := r.startRole(program, 0, "send", "--check", "--duration", fmt.Sprintf("%.0fs", longestRole.Seconds()),
		"--rate", strconv.Itoa(outageRate)+"pps", "--to-mac", r.Spec.Ends[1].MAC.String())
	awaitPackets(t, sink)
	victim := report.Processes[len(report.Processes)-1]
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	killProcess(t, victim)
	began := time.Now()
	if err := reviver.Revive(ctx, r.Spec, report); err != nil {
		t.Fatalf("after %s was killed: %v%s", victim.Name, err, r.logs())
	}
	revived := time.Since(began)
	awaitPackets(t, sink) // virtio-user looks for a new switch once a second
	if err := sender.Signal(os.Interrupt); err != nil {
		t.Errorf("the sending application has ended: %v", err)
	}
	var sent struct{ Sent, Unsent int }
	var got struct{ Received, Corrupt int }
	readResult(t, send, &sent)
	if err := sendEnd(); err != nil {
		t.Errorf("the sending application did not continue: %v", err)
	}
	// A switch that had no CPU when the sender ended has lost the sender's last words with its ring.
	if err := receiver.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the receiving application: %v", err)
	}
	readResult(t, sink, &got)
	if err := sinkEnd(); err != nil {
		t.Errorf("the receiving application did not continue: %v", err)
	}
	lost := sent.Sent - got.Received
	t.Logf("%s killed at %d packets/s: running again after %s; of %d packets %d were lost and %d could not be sent, which is what passes in %s; neither application was restarted",
		victim.Name, outageRate, revived.Round(time.Millisecond), sent.Sent+sent.Unsent, lost, sent.Unsent,
		(time.Duration(lost+sent.Unsent) * time.Second / outageRate).Round(time.Millisecond))
	if got.Corrupt > 0 || lost < 0 {
		t.Errorf("%d packets were corrupt; received %d of %d", got.Corrupt, got.Received, sent.Sent)
	}
}

// startRole starts the generator at an end. It returns its process, its output
// once it is ready, and a function that waits for its exit.
func (r *Rig) startRole(program string, end int, role string, args ...string) (*os.Process, *bufio.Reader, func() error) {
	r.t.Helper()
	cmd := r.draygen(program, end, role, args...)
	out, err := cmd.StdoutPipe()
	testenv.Must(r.t, err)
	testenv.Must(r.t, r.start(cmd, end))
	lines := bufio.NewReader(out)
	if ready, err := lines.ReadString('\n'); err != nil || !strings.Contains(ready, `"ready"`) {
		r.t.Fatalf("%s is not ready: %v: %s%s", role, err, ready, cmd.Stderr)
	}
	return cmd.Process, lines, func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w: %s", err, cmd.Stderr)
		}
		return nil
	}
}

// awaitPackets waits until a sink has received packets in an interval that begins after now.
func awaitPackets(t *testing.T, sink *bufio.Reader) {
	t.Helper()
	var now unix.Timespec
	testenv.Must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	for {
		var line struct {
			Event    string
			From     int64 `json:"from_ns"`
			Received int
		}
		text, err := sink.ReadString('\n')
		if err != nil || json.Unmarshal([]byte(text), &line) != nil || line.Event != "interval" {
			t.Fatalf("nothing passes: %v: %q", err, text)
		}
		if line.From >= now.Nano() && line.Received > 0 {
			return
		}
	}
}

// readResult reads the generator's last line.
func readResult(t *testing.T, lines *bufio.Reader, result any) {
	t.Helper()
	for {
		text, err := lines.ReadString('\n')
		if strings.Contains(text, `"event":"interval"`) {
			continue
		}
		if err != nil && err != io.EOF || json.Unmarshal([]byte(text), result) != nil {
			t.Fatalf("the generator's result: %v: %q", err, text)
		}
		return
	}
}
