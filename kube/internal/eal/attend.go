// SPDX-License-Identifier: Apache-2.0

package eal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/kube/internal/meet"
)

// An application whose devices have sockets needs someone next to it. A socket at which a device
// listens is in a file system of its own container, so it must be shown to the other pod (net_memif),
// or to the switch of the node (net_virtio_user), which connects again by itself. A net_memif device
// that connects does so once, when it starts: then the socket must be there, and when the connection
// is lost, the application must start again.

const (
	// connectGrace is how long an application's first start may take to connect its devices. It
	// doubles with each start that fails to.
	connectGrace = 3 * time.Second
	connectTries = 5
	// stopGrace is how long an application may take to end before it is killed.
	stopGrace = 5 * time.Second
	// sayAfter is how long a port waits for its other end until that is worth a line.
	sayAfter = 2 * time.Second
)

// Attended reports whether an application with these devices needs dray-eal to stay.
func (s Setting) Attended() bool { return slices.ContainsFunc(s.Vdevs, attended) }

func attended(v dpdk.Vdev) bool { return v.Socket() != "" }

// attendant is next to one application.
type attendant struct {
	setting Setting
	doors   string // directory of the sockets at which pods meet others
	say     io.Writer
	signals <-chan os.Signal // for the application
	netns   host.Netns
	grace   time.Duration // of the first start
	leave   bool          // the application ends by itself if its devices are not connected
	shown   []*meet.Shown // of the connecting devices, in their order
}

// Attend runs a command next to which something must stay, and returns its exit status. It passes
// on signals. An error says why the application was not started, or had to be stopped. A command with
// only one port ends by itself.
func Attend(ctx context.Context, program string, argv []string, only string, signals <-chan os.Signal) (code int, err error) {
	s, err := read(only)
	if err != nil {
		return 1, err
	}
	a := &attendant{setting: s, doors: portsInside, say: os.Stderr, signals: signals, grace: connectGrace, leave: only != ""}
	return a.attend(ctx, program, argv)
}

func (a *attendant) attend(ctx context.Context, program string, argv []string) (int, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := a.makeDirs(); err != nil {
		return 1, err
	}
	if ended, err := a.awaitOthers(ctx); err != nil {
		return 1, err
	} else if ended != 0 {
		return signalled + int(ended), nil
	}
	defer func() {
		for _, s := range a.shown {
			_ = s.Close()
		}
	}()
	var showing sync.WaitGroup
	defer showing.Wait()
	defer stop()
	for _, v := range a.devices("") {
		showing.Go(func() { a.show(ctx, v) })
	}
	for try, grace := 1, a.grace; ; try, grace = try+1, 2*grace {
		code, early, err := a.run(ctx, program, argv, grace)
		if !early || try == connectTries {
			return code, err
		}
		fmt.Fprintf(a.say, "dray-eal: %v; it starts again\n", err)
	}
}

// devices are those that listen (no name is awaited), or those that connect.
func (a *attendant) devices(awaits string) (all []dpdk.Vdev) {
	for _, v := range a.setting.Vdevs {
		if attended(v) && v.Awaits == awaits {
			all = append(all, v)
		}
	}
	return all
}

// makeDirs makes the directory of each device. An earlier application may have left its socket.
func (a *attendant) makeDirs() error {
	for _, v := range a.setting.Vdevs {
		if !attended(v) {
			continue
		}
		if err := errors.Join(os.RemoveAll(v.Dir), os.Mkdir(v.Dir, 0o700)); err != nil {
			return fmt.Errorf("port %s: %w", v.Port, err)
		}
	}
	return nil
}

// awaitOthers waits until each connecting device has a socket to connect to. ended is a signal to
// end that came first.
func (a *attendant) awaitOthers(ctx context.Context) (ended syscall.Signal, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	found := make(chan error, 1)
	go func() {
		for _, v := range a.devices(dpdk.MemifSocket) {
			timer := time.AfterFunc(sayAfter, func() {
				fmt.Fprintf(a.say, "dray-eal: port %s waits until the application of its other end, on this node, listens\n", v.Port)
			})
			s, err := meet.Look(ctx, filepath.Join(a.doors, v.Port))
			timer.Stop()
			if err == nil {
				a.shown = append(a.shown, s)
				err = os.Symlink(meet.ProcPath(firstFile+len(a.shown)-1), filepath.Join(v.Dir, v.Socket()))
			}
			if err != nil {
				found <- fmt.Errorf("port %s: %w", v.Port, err)
				return
			}
		}
		found <- nil
	}()
	for {
		select {
		case err := <-found:
			return 0, err
		case s := <-a.signals:
			if s == unix.SIGTERM || s == unix.SIGINT {
				stop()
				<-found
				return s.(syscall.Signal), nil
			}
		}
	}
}

// firstFile is the descriptor at which the application finds the first socket.
const firstFile = 3

// show shows a listening device's socket until ctx ends.
func (a *attendant) show(ctx context.Context, v dpdk.Vdev) {
	path := filepath.Join(v.Dir, v.Socket())
	await := func(ctx context.Context) error {
		for {
			s, err := a.netns.UnixSocket(path)
			if err == nil && s.Listening && settled(path) {
				// Who connects may be another user. No one else comes to the directory.
				return os.Chmod(path, 0o777)
			}
			if err := host.Sleep(ctx, s.Pause()); err != nil {
				return err
			}
		}
	}
	if err := meet.Show(ctx, filepath.Join(a.doors, v.Port), path, await); err != nil {
		fmt.Fprintf(a.say, "dray-eal: port %s: %v\n", v.Port, err)
	}
}

// settle is how long a socket must have existed. net_memif listens before the application has
// started its device. Then it refuses connections, and has been seen to crash.
const settle = time.Second

func settled(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) >= settle
}

// run runs the application once. It stops one whose devices do not connect, which is early, or
// have lost their connection.
func (a *attendant) run(ctx context.Context, program string, argv []string, grace time.Duration) (code int, early bool, err error) {
	app, err := a.start(program, argv)
	if err != nil {
		return 1, false, err
	}
	watching, done := context.WithCancel(ctx)
	defer done()
	useless := make(chan error, 1)
	go func() {
		var why error
		if early, why = a.watch(watching, grace); why != nil {
			useless <- why
		}
		close(useless)
	}()
	stopped := useless
	ending := false // by a signal: then it does not start again
	var kill <-chan time.Time
	for {
		select {
		case status := <-app.ended:
			done()
			if why := <-useless; why != nil {
				err = why
			}
			if err != nil && !ending {
				return 1, early, err
			}
			return exitCode(status), false, nil
		case s := <-a.signals:
			ending = ending || s == unix.SIGTERM || s == unix.SIGINT
			app.signal(s.(syscall.Signal))
		case err = <-stopped:
			stopped = nil
			if err != nil {
				app.signal(unix.SIGTERM)
				kill = time.After(stopGrace)
			}
		case <-kill:
			app.signal(unix.SIGKILL)
		}
	}
}

// watch returns why the application must start again; nil when ctx ends.
func (a *attendant) watch(ctx context.Context, grace time.Duration) (early bool, why error) {
	devices := a.devices(dpdk.MemifSocket)
	if len(devices) == 0 || a.leave {
		<-ctx.Done()
		return false, nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	gone := make(chan int, len(devices))
	var connections []host.Connection
	for i, s := range a.shown {
		connections = append(connections, host.Connection{Netns: a.netns, Path: s.Path})
		go func() {
			s.Gone(ctx)
			if ctx.Err() == nil {
				gone <- i
				stop()
			}
		}()
	}
	i, early := host.WatchConnections(ctx, connections, grace)
	select {
	case i = <-gone:
		return false, fmt.Errorf("the application at the other end of port %s has ended, and DPDK's driver never connects again", devices[i].Port)
	default:
	}
	switch {
	case i < 0:
		return false, nil
	case early:
		return true, fmt.Errorf("port %s did not connect within %v", devices[i].Port, grace)
	}
	return false, fmt.Errorf("port %s has lost its connection, and DPDK's driver never connects again", devices[i].Port)
}
