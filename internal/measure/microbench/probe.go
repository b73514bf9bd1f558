// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/drayage/dray/internal/host"
)

// Sample is a line of probe output: its measurement in one round.
type Sample struct {
	Case   string    `json:"case"`
	Round  int       `json:"round"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`

	// For a load in adaptive mode: the receiver's CPU use, how long either end was
	// ready to run without a CPU, and the time that a packet took the sender.
	CPUPercent     float64 `json:"cpu_percent"`
	StarvedPercent float64 `json:"starved_percent"`
	SendNS         float64 `json:"send_ns"`

	// For kills: the survivor's counts.
	Packets float64 `json:"packets"`
	Lost    float64 `json:"lost"`
	Leaked  float64 `json:"leaked"`
	Stalls  float64 `json:"stalls"`
	Longest float64 `json:"longest_ns"`
	Starved float64 `json:"starved_ns"`

	// For EAL programs.
	Size  int     `json:"size"`
	TSCHz float64 `json:"tsc_hz"`
}

// probe is a measuring C program: it answers each line with a sample.
type probe struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	err  bytes.Buffer
	stop func() bool
	wait func() error // for its end; how it exited
}

// startProbe starts a program, which ends with ctx. files are its descriptors 3 and up.
func startProbe(ctx context.Context, path string, files ...*os.File) (*probe, error) {
	p := &probe{name: filepath.Base(path), cmd: exec.Command(path)}
	p.cmd.ExtraFiles = files
	p.cmd.Stderr = &p.err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 1<<20)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.wait = sync.OnceValue(p.cmd.Wait)
	p.stop = context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() }) // it may have just ended
	return p, nil
}

// read waits for the next sample; other lines, such as EAL's, are skipped.
func (p *probe) read() (Sample, error) {
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return Sample{}, p.ended()
		}
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		var s Sample
		if err := json.Unmarshal(line, &s); err != nil {
			return Sample{}, fmt.Errorf("%s: %w", p.name, err)
		}
		return s, nil
	}
}

// ask requests a measurement of a case in a round.
func (p *probe) ask(round int, format string, arguments ...any) (Sample, error) {
	if _, err := fmt.Fprintf(p.in, "%d %s\n", round, fmt.Sprintf(format, arguments...)); err != nil {
		return Sample{}, p.ended()
	}
	return p.read()
}

// ended reports how a program that closed its output has ended.
func (p *probe) ended() error {
	err := p.wait()
	return fmt.Errorf("%s has ended (%v): %s", p.name, err, host.LastLines(p.err.String()))
}

// end makes the program end, and waits for it.
func (p *probe) end() error {
	defer p.stop()
	_ = p.in.Close() // it may have ended before
	_, _ = io.Copy(io.Discard, p.out)
	return p.wait()
}
