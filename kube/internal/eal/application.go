// SPDX-License-Identifier: Apache-2.0

package eal

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/dpdk"
)

// application is one that runs.
type application struct {
	pid   int
	ended chan unix.WaitStatus
}

// start starts a program that has the sockets of the connecting devices from firstFile on.
func (a *attendant) start(program string, argv []string) (*application, error) {
	files := []uintptr{0, 1, 2}
	for _, s := range a.shown {
		files = append(files, s.Socket.Fd())
	}
	if slices.ContainsFunc(a.setting.Vdevs, func(v dpdk.Vdev) bool { return v.Driver == dpdk.NetVirtioUser }) {
		// net_virtio_user was seen to write to a switch that had ended. The application inherits this.
		signal.Ignore(unix.SIGPIPE)
	}
	pid, err := syscall.ForkExec(program, argv, &syscall.ProcAttr{Env: os.Environ(), Files: files})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	app := &application{pid: pid, ended: make(chan unix.WaitStatus, 1)}
	go app.wait()
	return app, nil
}

// wait waits for the application. The first process of a container inherits those whose parents
// have ended, and takes leave of them, too.
func (app *application) wait() {
	which := app.pid
	if os.Getpid() == 1 {
		which = -1
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(which, &status, 0, nil)
		if pid == app.pid || err != nil && !errors.Is(err, unix.EINTR) {
			app.ended <- status
			return
		}
	}
}

// signal passes on a signal. The application may have ended already.
func (app *application) signal(s syscall.Signal) { _ = unix.Kill(app.pid, s) }

// signalled is added to the number of the signal that ended a process.
const signalled = 128

// exitCode is the exit status of a process, as shells say it.
func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return signalled + int(s.Signal())
	}
	return s.ExitStatus()
}
