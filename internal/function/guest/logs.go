// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// maxLog is the size of a guest's log, in bytes, at which it replaces the older
// one and a new one begins. A guest may print forever.
const maxLog = 1 << 20

// olderSuffix marks the previous log.
const olderSuffix = ".1"

// logged are the logs of a guest, in the order of LogsMain's inputs.
var logged = []string{fileConsole, fileQEMULog}

// startLogs starts a process that logs the output of the guest's console and QEMU,
// and ends with them. It returns their outputs, and a channel that closes when all
// output is logged.
func (c Config) startLogs() (outputs []*os.File, kept <-chan struct{}, err error) {
	agent, err := FindAgent()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(agent, "logs", c.Dir)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var inputs []*os.File
	defer func() {
		for _, f := range inputs {
			f.Close()
		}
		if err != nil {
			for _, f := range outputs {
				f.Close()
			}
		}
	}()
	for range logged {
		read, write, err := os.Pipe()
		if err != nil {
			return outputs, nil, err
		}
		inputs, outputs = append(inputs, read), append(outputs, write)
	}
	cmd.ExtraFiles = inputs
	if c.Detached {
		err = c.Place.Start(cmd)
	} else {
		err = cmd.Start()
	}
	if err != nil {
		return outputs, nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // unwritable output is lost
		close(done)
	}()
	return outputs, done, nil
}

// LogsMain is `dray-guest logs DIR`. It returns the exit status.
func LogsMain(dir string) int {
	var wg sync.WaitGroup
	errs := make([]error, len(logged))
	for i, name := range logged {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = keepLog(os.NewFile(uintptr(firstHandle+i), name), filepath.Join(dir, name), maxLog)
		}()
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintf(os.Stderr, "dray-guest: %v\n", err)
		return clientFailed
	}
	return 0
}

// keepLog writes its input to a log and, every limit bytes, begins another.
// Unwritable data is discarded: no writer may wait for a log.
func keepLog(in io.Reader, path string, limit int64) error {
	var failed error
	for {
		var n int64
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err == nil {
			n, err = io.Copy(f, io.LimitReader(in, limit))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			_, rest := io.Copy(io.Discard, in)
			return errors.Join(failed, err, rest)
		}
		if n < limit { // its end
			return failed
		}
		failed = os.Rename(path, path+olderSuffix)
	}
}

// lastLines is the end of a log, for an error: five lines of printable characters.
func lastLines(path string) string {
	var text []byte
	for _, file := range []string{path + olderSuffix, path} {
		part, err := readEnd(file)
		if err == nil {
			text = append(text, part...)
		}
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(text), "?")), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// endBytes is how much of a log's end is read.
const endBytes = 4 << 10

func readEnd(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > endBytes {
		if _, err := f.Seek(-endBytes, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, endBytes))
}
