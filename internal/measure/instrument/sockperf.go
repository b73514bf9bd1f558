// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Sockperf measures round-trip times by a UDP ping-pong of Params.MessageRate
// requests per second for Params.Duration, rounded up to whole seconds, under
// Params.Load. sockperf excludes the first 400 ms and the last 50 ms of each
// trial.
type Sockperf struct{}

var sockperf = tool{name: "sockperf", pkg: "sockperf", ask: []string{"--version"}, version: regexp.MustCompile(`sockperf, version ([0-9][0-9.]*)`)}

func (Sockperf) Name() string                             { return sockperf.name }
func (Sockperf) Probe(ctx context.Context) inventory.Item { return sockperf.probe(ctx) }

const (
	// SockperfOverhead is a sockperf trial's time in addition to its duration: it
	// first sleeps for 2 s, and calibrates its clock.
	SockperfOverhead = 2400 * time.Millisecond
	// maxSamples bounds the log of one trial.
	maxSamples = 1_000_000
	// messageBytes is the UDP payload of a request.
	messageBytes = 64
)

// Run measures round-trip times, one sample for each request.
func (Sockperf) Run(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error) {
	t := begin(record.QLatency, from, to)
	whole := wholeSeconds(p.Duration)
	if p.MessageRate == 0 || p.MessageRate > maxSamples/uint64(whole) {
		return t, fmt.Errorf("sockperf: %d messages/s for %d s: send 1 to %d messages in total", p.MessageRate, whole, maxSamples)
	}
	if ipHeader(to.IP) == ipv6Header {
		return t, errors.New("sockperf cannot measure over IPv6: give the ports of the link IPv4 addresses")
	}
	path, version, err := sockperf.find(ctx)
	if err != nil {
		return t, err
	}
	ports, err := freePorts(to, 1)
	if err != nil {
		return t, err
	}
	// The log is in memory that is freed with the last process that holds it.
	log, err := memfile("sockperf-log")
	if err != nil {
		return t, err
	}
	defer log.Close()
	s := sockperfPrograms(path, from, to, ports[0], whole, p.MessageRate)
	inside := ""
	if from.machine() {
		inside = fmt.Sprintf("/tmp/dray-sockperf-%d.log", ports[0])
		s.client[len(s.client)-1] = fullLog + inside
	} else {
		s.extra = []*os.File{log}
	}
	t.Instrument = describe(sockperf, version, s)
	o, load, err := s.runUnder(ctx, p.Load)
	t.Start, t.Duration, t.Raw, t.Load = o.start, o.duration, raw(o.client), load
	if err != nil {
		return t, err
	}
	t.Duration = time.Duration(whole) * time.Second
	if load != nil && missed(load.Achieved, load.Offered) {
		t.Marks = append(t.Marks, record.MarkLoadMissed)
	}
	if from.machine() {
		if err := takeLog(ctx, from, inside, log); err != nil {
			return t, err
		}
	}
	latency, err := readSockperf(o.client, log, p.MessageRate, t.Duration)
	if err != nil {
		return t, fmt.Errorf("sockperf from %s to %s: %w", from.Name, to.Name, err)
	}
	t.Latency = latency
	if latency.Lost > 0 {
		t.Marks = append(t.Marks, record.MarkStalled)
	}
	return t, nil
}

// fullLog is the option that names sockperf's log; it is the last one.
const fullLog = "--full-log="

// takeLog copies a log out of sockperf's virtual machine.
func takeLog(ctx context.Context, at Endpoint, path string, log io.Writer) error {
	text, err := readInMachine(ctx, at, path)
	if err != nil {
		return err
	}
	if _, err := log.Write(text); err != nil {
		return fmt.Errorf("keep sockperf's log: %w", err)
	}
	return removeInMachine(ctx, at, path)
}

func sockperfPrograms(path string, from, to Endpoint, port uint16, whole int, rate uint64) clientServer {
	ip, p := to.IP.String(), strconv.Itoa(int(port))
	return clientServer{
		from: from, to: to,
		server: []string{path, "sr", "-i", ip, "-p", p},
		client: []string{path, "pp", "-i", ip, "-p", p, "-m", strconv.Itoa(messageBytes),
			"-t", strconv.Itoa(whole), "--mps=" + strconv.FormatUint(rate, 10), "--full-rtt", fullLog + "/proc/self/fd/3"},
		listen:  socket{"udp", port},
		timeout: time.Duration(whole)*time.Second + SockperfOverhead + slack,
	}
}

// runUnder runs both programs with a load of bits per second in the same direction,
// from before the measurement to after it.
func (s clientServer) runUnder(ctx context.Context, bits uint64) (outcome, *record.Load, error) {
	if bits == 0 {
		o, err := s.run(ctx)
		return o, nil, err
	}
	load, err := StartLoad(ctx, s.from, s.to, bits, s.timeout+slack)
	if err != nil {
		return outcome{}, nil, err
	}
	defer load.Abort()
	o, err := s.run(ctx)
	if err != nil {
		return o, nil, err
	}
	achieved, err := load.Stop()
	return o, &achieved, err
}

func memfile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// maxLogBytes bounds how much of a log is read: a line takes up to 60 bytes.
const maxLogBytes = 64*maxSamples + 64<<10

func readSockperf(out []byte, log *os.File, rate uint64, d time.Duration) (*record.Latency, error) {
	text, err := io.ReadAll(io.NewSectionReader(log, 0, maxLogBytes))
	if err != nil {
		return nil, fmt.Errorf("read its log: %w", err)
	}
	return parseSockperf(out, text, rate, d)
}
