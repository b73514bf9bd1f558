// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
)

// generated is the number of packets per generator run, and fewest the number
// in the last of several. So few fit into any ring while a busy machine keeps
// a thread from running.
const generated, fewest = 2000, 60

// outcome is the result of the generator's sink.
type outcome struct {
	Received, Corrupt, Reordered, Duplicates int
	Clean                                    bool
}

// generate sends packets of that frame size, in bytes, from one end to the other. The
// generator checksums each payload. A lost, changed, duplicated or reordered packet fails
// the test. If the kernel carries packets, or a polling receiver shares its CPU, some may
// be lost. Then all must arrive in one of several runs, each of half as many.
func (r *Rig) generate(draygen string, from, to, size int) {
	r.t.Helper()
	runs := 1
	if len(r.driver.Caps().Faces) > 1 || r.Spec.Ends[from].Dpdk() || r.Spec.Ends[to].Dpdk() {
		runs = 8
	}
	for run, packets := 1, generated; ; run, packets = run+1, max(packets/2, fewest) {
		got, err := r.generateOnce(draygen, from, to, size, packets)
		switch {
		case err != nil:
			r.t.Fatalf("%d bytes from end %d to end %d: %v", size, from+1, to+1, err)
		case got.Clean && got.Received == packets:
			return
		case got.Corrupt > 0 || got.Duplicates > 0 || run == runs:
			r.t.Fatalf("%d bytes from end %d to end %d: of %d packets arrived %+v, in run %d", size, from+1, to+1, packets, got, run)
		}
	}
}

func (r *Rig) generateOnce(draygen string, from, to, size, packets int) (got outcome, err error) {
	// It exits before it is killed, and a run without packets is repeated.
	sink := r.draygen(draygen, to, "sink", "--once", "--duration", "30s")
	out, err := sink.StdoutPipe()
	if err != nil {
		return got, err
	}
	if err := r.start(sink, to); err != nil {
		return got, err
	}
	lines := bufio.NewReader(out)
	if ready, err := lines.ReadString('\n'); err != nil {
		return got, fmt.Errorf("the sink is not ready: %w: %s%s", err, ready, sink.Stderr)
	}
	send := r.draygen(draygen, from, "send", "--check", "--packets", strconv.Itoa(packets),
		"--rate", r.pace(from, to), "--catch-up", "10s", "--size", strconv.Itoa(size))
	send.Args = append(send.Args, r.destination(from, to)...)
	if err := r.start(send, from); err != nil {
		return got, err
	}
	if err := send.Wait(); err != nil {
		return got, fmt.Errorf("send: %w: %s", err, send.Stderr)
	}
	result, err := lines.ReadString('\n')
	if err := errors.Join(err, sink.Wait()); err != nil {
		return got, fmt.Errorf("sink: %w: %s", err, sink.Stderr)
	}
	return got, json.Unmarshal([]byte(result), &got)
}

// pace is the generator's rate: a switch that polls for DPDK applications
// serves interfaces from a thread that does not poll.
func (r *Rig) pace(from, to int) string {
	if r.Spec.Ends[from].Dpdk() != r.Spec.Ends[to].Dpdk() {
		return "2kpps"
	}
	return "20kpps"
}

// longestRole is how long a generator may run, also on a busy machine where a switch takes
// long to restart.
const longestRole = 3 * time.Minute

// peerTimeout is how long a device may take to start, or any port be without its peer: longer
// than a sink waits for a stream.
const peerTimeout = "60s"

// sinkPort is the port of a sink on an interface.
const sinkPort = 5010

// draygen is a generator command on the port of an end.
func (r *Rig) draygen(program string, end int, role string, args ...string) *exec.Cmd {
	e := r.Spec.Ends[end]
	cmd := exec.Command(program, append([]string{role, "--peer-timeout", peerTimeout}, args...)...)
	cmd.Stderr = &bytes.Buffer{}
	if e.Dpdk() {
		r.asApplication(cmd, e)
		return cmd
	}
	port := "dray:" + e.Name
	if !e.Native() {
		port = "udp:" + netip.AddrPortFrom(r.stations[end].ip, sinkPort).String()
	}
	cmd.Args = append(cmd.Args, "--port", port)
	cmd.Env = append(os.Environ(), "DRAY_PORTS="+filepath.Dir(e.Socket))
	return cmd
}

// destination is the address to send to: a native port sends frames, which an
// interface accepts only if they are for its address.
func (r *Rig) destination(from, to int) []string {
	a, b := r.Spec.Ends[from], r.Spec.Ends[to]
	if frames(a) && frames(b) {
		return []string{"--to-mac", b.MAC.String()}
	}
	args := []string{"--to", netip.AddrPortFrom(r.stations[to].ip, sinkPort).String()}
	if a.Dpdk() { // a DPDK device has no address
		args = append(args, "--from", r.stations[from].ip.String())
	}
	switch {
	case frames(a) && b.Uplink:
		args = append(args, "--to-mac", outsideMAC.String())
	case frames(a):
		args = append(args, "--to-mac", b.MAC.String())
	}
	return args
}

// frames reports whether the application of an end sends frames.
func frames(e transport.End) bool { return e.Native() || e.Dpdk() }

// start starts a program as the function of an end, and stops it at the end of
// the test at the latest.
func (r *Rig) start(cmd *exec.Cmd, end int) error {
	if err := (host.Place{Netns: r.stations[end].ns}).Start(cmd); err != nil {
		return err
	}
	watchdog := time.AfterFunc(2*longestRole, func() { _ = cmd.Process.Kill() })
	r.t.Cleanup(func() {
		watchdog.Stop()
		_ = cmd.Process.Kill() // it has exited, unless the test failed
		_ = cmd.Wait()
	})
	return nil
}
