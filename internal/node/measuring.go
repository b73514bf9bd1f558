// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

const (
	// fileMeasuring is locked by the measuring process, and names it.
	fileMeasuring = ".measuring"
	// measuringPoll is how often a waiting process checks again.
	measuringPoll = 50 * time.Millisecond
)

// Measurer is the process that measures on this host.
type Measurer struct {
	Process host.ProcessID `json:"process"`
	Command string         `json:"command"` // "run", "bench"
	Since   time.Time      `json:"since"`
}

func (m Measurer) String() string {
	if m.Process.PID == 0 { // it has not written its name yet
		return "another dray"
	}
	return fmt.Sprintf("dray %s, process %d, since %s", m.Command, m.Process.PID, m.Since.Local().Format(time.TimeOnly))
}

// Measure waits until no other dray of this state directory measures. Others then
// wait until end is called or this process ends. While it waits, it calls wait with
// each other measurer; an error from wait ends the waiting.
func (n *Node) Measure(ctx context.Context, command string, wait func(Measurer) error) (end func(), err error) {
	self, err := host.Identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	f, err := n.openMeasuring()
	if err != nil {
		return nil, err
	}
	var reported Measurer
	first := false
	for {
		err := host.TryLock(f, unix.LOCK_EX)
		if err == nil {
			break
		}
		if errors.Is(err, host.ErrLocked) {
			err = nil
			if holder := readMeasurer(f); !first || holder != reported && holder.Process.PID != 0 {
				first, reported = true, holder
				err = wait(holder)
			}
		}
		if err == nil {
			err = host.Sleep(ctx, measuringPoll)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if err := writeMeasurer(f, Measurer{Process: self, Command: command, Since: time.Now().UTC()}); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	withdraw, err := host.AnnounceMeasurement()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		withdraw()
		f.Close()
	}, nil
}

// openMeasuring opens the file for root alone: an ordinary user must not block
// every measurement.
func (n *Node) openMeasuring() (*os.File, error) {
	if err := host.MakeStateDir(n.StateDir); err != nil {
		return nil, err
	}
	path, err := n.ownFile(fileMeasuring)
	if err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
}

// readMeasurer is the measuring process; the zero value if not written yet.
func readMeasurer(f *os.File) Measurer {
	var m Measurer
	if err := json.NewDecoder(io.NewSectionReader(f, 0, 1<<16)).Decode(&m); err != nil || !m.Process.Alive() {
		return Measurer{}
	}
	return m
}

func writeMeasurer(f *os.File, m Measurer) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	return err
}
