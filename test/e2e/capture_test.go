// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// capturing is a `dray capture` in progress.
type capturing struct {
	b      *bench
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr chan string // line by line
}

// capture starts a capture, and returns once it has begun.
func (b *bench) capture(args ...string) *capturing {
	b.t.Helper()
	c := b.startCapture(args...)
	first := <-c.stderr
	if strings.HasPrefix(first, "Waiting until ") { // a port that answers late looks closed
		first = <-c.stderr
	}
	if !strings.HasPrefix(first, "Capturing at ") {
		b.t.Fatalf("the capture prints %q", first)
	}
	return c
}

// startCapture starts a capture, which may have to wait for its port.
func (b *bench) startCapture(args ...string) *capturing {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	b.t.Cleanup(cancel)
	c := &capturing{b: b, cmd: b.command(ctx, append([]string{"capture"}, args...)...), stderr: make(chan string, 64)}
	c.cmd.Stdout = &c.stdout
	errs, err := c.cmd.StderrPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		defer close(c.stderr)
		for s := bufio.NewScanner(errs); s.Scan(); {
			c.stderr <- s.Text()
		}
	}()
	return c
}

func (c *capturing) signal(s syscall.Signal) {
	c.b.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.b.t.Fatal(err)
	}
}

// end waits for the end of the capture, and returns its last output.
func (c *capturing) end() string {
	c.b.t.Helper()
	last := ""
	for line := range c.stderr {
		last = line
	}
	if err := c.cmd.Wait(); err != nil {
		c.b.t.Errorf("capture: %v: %s", err, last)
	}
	return last
}

// sink opens port p0 of function b until a stream has ended; the result waits for that.
func (b *bench) sink(chain, draygen string) (ended func()) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	b.t.Cleanup(cancel)
	cmd := b.command(ctx, "exec", chain, "b", "--", draygen, "sink", "--port", "dray:p0", "--once", "--duration", "100s")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil {
		b.t.Fatalf("the sink is not ready: %v: %s", err, line)
	}
	return func() {
		b.t.Helper()
		if line, err := lines.ReadString('\n'); err != nil {
			b.t.Errorf("the sink ends with %q: %v", line, err)
		}
		if err := cmd.Wait(); err != nil {
			b.t.Errorf("the sink: %v", err)
		}
	}
}

// send sends packets from port p0 of function a.
func (b *bench) send(chain, draygen string, packets int) {
	b.t.Helper()
	b.want(0, "exec", chain, "a", "--", draygen, "send", "--port", "dray:p0", "--check", "--packets", strconv.Itoa(packets), "--rate", "10kpps", "--size", "200", "--catch-up", "60s")
}

// Ends of a stream: draygen announces the end eight times, and the sink leaves
// after any of them.
const endsFewest, endsMost = 1, 8

// pcapng reads packets and the number of dropped ones from a capture, and fails
// the test if it is not complete.
func pcapng(t *testing.T, b []byte) (packets [][]byte, dropped uint64) {
	t.Helper()
	le := binary.LittleEndian
	complete := false
	for len(b) >= 12 {
		length := le.Uint32(b[4:])
		if length < 12 || int(length) > len(b) {
			t.Fatalf("a block of %d bytes, but only %d remain", length, len(b))
		}
		switch body := b[8 : length-4]; le.Uint32(b) {
		case 6: // Enhanced Packet
			packets = append(packets, body[20:20+le.Uint32(body[12:])])
		case 5: // Interface Statistics: options follow interface and time
			complete = true
			for o := body[12:]; le.Uint16(o) != 0; o = o[4+(le.Uint16(o[2:])+3)/4*4:] {
				if le.Uint16(o) == 5 {
					dropped = le.Uint64(o[4:])
				}
			}
		}
		b = b[length:]
	}
	if len(b) > 0 || !complete {
		t.Errorf("the capture ends with %d bytes of a block, complete: %v", len(b), complete)
	}
	return packets, dropped
}

// nativePair is a chain of two native ports that is up until the test ends.
func nativePair(t *testing.T, name, runtime string) (*bench, string) {
	t.Helper()
	testenv.Program(t, "tcpdump")
	draygen := generator(t)
	b := newBench(t)
	b.want(0, "up", b.file(pair{Name: name, Runtime: runtime, Face: "native", Command: `[sleep, "1000"]`}.yaml()))
	t.Cleanup(func() { b.want(0, "down", name) })
	return b, draygen
}

// Every packet that a native port gets is in the capture, whole and in order, and
// tcpdump reads it:
//
//	a.p0 ==shm==> b.p0
//	               \ captured here
func TestCaptureOfANativePort(t *testing.T) {
	t.Parallel()
	const packets = 3000
	b, draygen := nativePair(t, "captured", "runc")
	c := b.startCapture("captured", "b.p0")
	if first := <-c.stderr; !strings.HasPrefix(first, "Waiting until a process opens") {
		t.Fatalf("before the port is open, the capture prints %q", first)
	}
	ended := b.sink("captured", draygen)
	b.send("captured", draygen, packets)
	ended()
	if last := c.end(); !strings.Contains(last, " 0 dropped") || !strings.Contains(last, "closed the port") {
		t.Errorf("it ends with %q", last)
	}
	frames, dropped := pcapng(t, c.stdout.Bytes())
	if n := len(frames); n < packets+endsFewest || n > packets+endsMost || dropped != 0 {
		t.Fatalf("%d frames, %d dropped; want %d, and some ends", n, dropped, packets)
	}
	for i, frame := range frames[:packets] {
		// Ethernet, IPv4 and UDP take 42 bytes; then comes draygen's header.
		if sequence := binary.LittleEndian.Uint64(frame[42+16:]); len(frame) != 200 || sequence != uint64(i) {
			t.Fatalf("frame %d has %d bytes and sequence %d", i, len(frame), sequence)
		}
	}
	tcpdump := exec.Command("tcpdump", "-n", "-r", "-", "udp[13] == 1") // data
	tcpdump.Stdin = &c.stdout
	out, err := tcpdump.Output()
	if lines := bytes.Count(out, []byte("\n")); err != nil || lines != packets {
		t.Errorf("tcpdump prints %d packets: %v", lines, err)
	}
}

// A stopped reader blocks nobody: packets without room are counted.
func TestCaptureThatStopsReading(t *testing.T) {
	t.Parallel()
	const packets, slots = 1000, 64
	b, draygen := nativePair(t, "stalled", "process")
	file := filepath.Join(t.TempDir(), "stalled.pcapng")
	ended := b.sink("stalled", draygen)
	c := b.capture("stalled", "b.p0", "--snaplen", "262144", "--write", file, "--json") // so long that few fit
	c.signal(syscall.SIGSTOP)
	b.send("stalled", draygen, packets)
	ended()
	c.signal(syscall.SIGCONT)
	c.end()
	var said struct{ Packets, Dropped int }
	if err := json.Unmarshal(c.stdout.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	lost := packets - slots
	if said.Packets != slots || said.Dropped < lost+endsFewest || said.Dropped > lost+endsMost {
		t.Errorf("%+v of %d packets and some ends, with room for %d", said, packets, slots)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if frames, dropped := pcapng(t, written); len(frames) != said.Packets || dropped != uint64(said.Dropped) {
		t.Errorf("the file has %d packets and %d drops; the command said %+v", len(frames), dropped, said)
	}
}

// A killed capture leaves nothing: the next one finds the port free. An
// interrupted one completes its file.
func TestCaptureKilledAndInterrupted(t *testing.T) {
	t.Parallel()
	b, draygen := nativePair(t, "killed", "process")
	ended := b.sink("killed", draygen)
	c := b.capture("killed", "b.p0")
	if r := b.want(1, "capture", "killed", "b.p0", "--write", os.DevNull); !strings.Contains(r.Err, "already being captured") {
		t.Errorf("a second capture of the port: %s", r)
	}
	c.signal(syscall.SIGKILL)
	for range c.stderr {
	}
	_ = c.cmd.Wait()
	var r result
	began := func() bool { return r.Code == 0 && !strings.Contains(r.Err, "within 10ms") } // else it gives up waiting
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r = b.dray("capture", "killed", "b.p0", "--write", os.DevNull, "--duration", "10ms")
		if began() {
			break
		}
	}
	if !began() {
		t.Errorf("after the death of a capture: %s", r)
	}
	c = b.capture("killed", "b.p0")
	c.signal(syscall.SIGINT)
	if last := c.end(); !strings.Contains(last, "0 packets captured") {
		t.Errorf("interrupted, it says %q", last)
	}
	pcapng(t, c.stdout.Bytes())
	b.send("killed", draygen, 10)
	ended()
}

// A capture of a port that no process opens ends in its time, and says so.
func TestCaptureOfAPortThatIsNotOpened(t *testing.T) {
	t.Parallel()
	b, _ := nativePair(t, "unopened", "process")
	r := b.want(0, "capture", "unopened", "b.p0", "--write", os.DevNull, "--duration", "200ms")
	if !strings.Contains(r.Err, "0 packets captured") || !strings.Contains(r.Err, "no process opened port b.p0 within 200ms") {
		t.Errorf("it says %s", r)
	}
}

// A port that the kernel serves is captured in the same way.
func TestCaptureOfAKernelPort(t *testing.T) {
	t.Parallel()
	testenv.Program(t, "ping")
	b := newBench(t)
	b.want(0, "up", b.file(`
apiVersion: drayage/v1
kind: Chain
name: kernel
functions:
  - {name: a, runtime: process, ports: [{name: p0, ip: 10.77.0.1/24}]}
  - {name: b, runtime: process, ports: [{name: p0, ip: 10.77.0.2/24}]}
links:
  - {name: ab, ends: [a.p0, b.p0]}
`))
	t.Cleanup(func() { b.want(0, "down", "kernel") })
	c := b.capture("kernel", "a.p0")
	b.want(0, "exec", "kernel", "a", "--", "ping", "-c", "3", "-i", "0.2", "-s", "100", "-W", "20", "10.77.0.2")
	c.signal(syscall.SIGINT)
	c.end()
	frames, _ := pcapng(t, c.stdout.Bytes())
	echoes := 0
	for _, f := range frames {
		if len(f) == 142 && binary.BigEndian.Uint16(f[12:]) == 0x0800 && f[23] == 1 {
			echoes++
		}
	}
	if echoes != 6 {
		t.Errorf("%d echo requests and replies in %d frames, want 6", echoes, len(frames))
	}
	for _, wrong := range []struct {
		code int
		args []string
		want string
	}{
		{1, []string{"kernel", "a.p1"}, "a.p0, b.p0"},
		{2, []string{"kernel", "a.p0", "--snaplen", "-1"}, "262144"},
		{2, []string{"kernel", "a.p0", "--json"}, "--write"},
		{1, []string{"absent", "a.p0"}, "absent"},
	} {
		if r := b.want(wrong.code, append([]string{"capture"}, wrong.args...)...); !strings.Contains(r.Stdout+r.Err, wrong.want) {
			t.Errorf("dray capture %v: %s", wrong.args, r)
		}
	}
}
