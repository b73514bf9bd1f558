// SPDX-License-Identifier: Apache-2.0

package eal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/kube/internal/meet"
)

// appArgument makes the test program an application of the kind that follows.
const appArgument = "-dray-test-app"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == appArgument {
		os.Exit(pretended(os.Args[2], os.Args[3], os.Args[4]))
	}
	os.Exit(m.Run())
}

// pretended is an application that listens or connects at a socket as net_memif does, and notes
// in a file that it runs.
func pretended(kind, socket, file string) int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	note := func() {
		if err := os.WriteFile(file, fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			panic(err)
		}
	}
	switch kind {
	case "exit":
		return 3
	case "listen":
		l, err := net.Listen("unixpacket", socket)
		if err != nil {
			panic(err)
		}
		note()
		go func() {
			for {
				if _, err := l.Accept(); err != nil {
					return
				}
			}
		}()
	case "connect", "connect late":
		if _, err := os.Stat(file); err != nil && kind == "connect late" { // the first start
			note()
			<-stop
			return 0
		}
		c, err := net.Dial("unixpacket", socket)
		if err != nil {
			panic(err)
		}
		defer c.Close()
		note()
	case "end slowly": // it never connects
		<-stop
		note()
	}
	<-stop
	return 4
}

// notes is what several goroutines write.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// pods are two pods whose ports meet: the first listens.
type pods struct {
	t      *testing.T
	dir    string
	driver string            // of their devices
	ready  map[string]string // file of each
	said   map[string]*notes
	leave  bool // applications end by themselves
	grace  time.Duration
}

func newPods(t *testing.T) *pods {
	t.Helper()
	dir, err := os.MkdirTemp("", "dray-eal-") // a socket's path has at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	p := &pods{t: t, dir: dir, driver: dpdk.NetMemif, grace: time.Minute, ready: map[string]string{}, said: map[string]*notes{}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- meet.Serve(ctx, dir, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	m := meet.Meeting{Name: "l"}
	for i, pod := range []string{"listen", "connect"} {
		if err := os.MkdirAll(filepath.Join(dir, pod, "doors"), 0o755); err != nil {
			t.Fatal(err)
		}
		m.Ends[i] = meet.End{Socket: filepath.Join(dir, pod, "doors", "n3"), User: os.Getuid()}
	}
	for {
		_, err := meet.Apply(ctx, dir, []meet.Meeting{m})
		if err == nil {
			return p
		}
		if !errors.Is(err, meet.ErrAbsent) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// outcome is that of a command.
type outcome struct {
	code int
	err  error
}

// attend starts a command of a pod. It ends with the test.
func (p *pods) attend(pod, kind string) (signals chan os.Signal, ended chan outcome) {
	p.t.Helper()
	v := dpdk.Vdev{Driver: p.driver, Port: "n3", Dir: filepath.Join(p.dir, pod, "n3")}
	if pod == "connect" {
		v.Awaits = dpdk.MemifSocket
	}
	signals, ended = make(chan os.Signal, 1), make(chan outcome, 1)
	ready := filepath.Join(p.dir, pod, "ready")
	p.ready[pod], p.said[pod] = ready, &notes{}
	a := &attendant{setting: Setting{Vdevs: []dpdk.Vdev{v}}, doors: filepath.Join(p.dir, pod, "doors"), say: p.said[pod], signals: signals, grace: p.grace, leave: p.leave}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		code, err := a.attend(context.Background(), os.Args[0], []string{"app", appArgument, kind, filepath.Join(v.Dir, v.Socket()), ready})
		ended <- outcome{code, err}
	}()
	end := sync.OnceFunc(func() {
		select {
		case <-finished:
		case signals <- syscall.SIGTERM:
			<-finished
		}
	})
	p.t.Cleanup(end)
	return signals, ended
}

// pid waits until the application of a pod runs.
func (p *pods) pid(pod string) (pid int) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(p.ready[pod])
		if err == nil && len(text) > 0 {
			if _, err = fmt.Sscan(string(text), &pid); err == nil {
				return pid
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s does not run: %v", pod, err)
		}
	}
}

// result waits until a command has ended.
func (p *pods) result(ended chan outcome) outcome {
	p.t.Helper()
	select {
	case o := <-ended:
		return o
	case <-time.After(time.Minute):
		p.t.Fatal("it does not end")
	}
	return outcome{}
}

// The connecting application starts once the other listens, and finds its socket.
func TestApplicationsMeet(t *testing.T) {
	p := newPods(t)
	connects, ended := p.attend("connect", "connect")
	time.Sleep(sayAfter + time.Second)
	if _, err := os.Stat(p.ready["connect"]); err == nil {
		t.Error("it runs before the other listens")
	}
	p.attend("listen", "listen")
	p.pid("connect")
	v := dpdk.Vdev{Driver: p.driver, Port: "n3", Dir: filepath.Join(p.dir, "listen", "n3")}
	listens, err1 := os.Stat(filepath.Join(v.Dir, v.Socket()))
	runs, err2 := os.Stat(p.ready["connect"])
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if took := runs.ModTime().Sub(listens.ModTime()); took < settle/2 {
		t.Errorf("it runs %v after the other listens, which is too early for DPDK", took)
	}
	connects <- syscall.SIGTERM // is the application's
	if got := p.result(ended); got.code != 4 || got.err != nil {
		t.Errorf("%+v", got)
	}
	if said := p.said["connect"].String(); !strings.Contains(said, "port n3 waits until") {
		t.Errorf("it said %q", said)
	}
}

// When the listening application ends, the connecting one is stopped as failed.
func TestTheConnectingApplicationFollows(t *testing.T) {
	p := newPods(t)
	_, first := p.attend("listen", "listen")
	_, second := p.attend("connect", "connect")
	p.pid("connect")
	if err := syscall.Kill(p.pid("listen"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := p.result(first); got.code != 128+9 || got.err != nil {
		t.Errorf("the killed one: %+v", got)
	}
	if got := p.result(second); got.code != 1 || got.err == nil || !strings.Contains(got.err.Error(), "port n3") {
		t.Errorf("the other: %+v", got)
	}
	if err := syscall.Kill(p.pid("connect"), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the other application: %v", err)
	}
	// A container that starts again finds the directory of the one before it.
	p.attend("listen", "listen")
	os.Remove(p.ready["connect"])
	p.attend("connect", "connect")
	p.pid("connect")
}

// A program that measures reports what it has seen when the other one has ended.
func TestAProgramThatMeasuresIsNotStopped(t *testing.T) {
	p := newPods(t)
	p.leave = true
	_, first := p.attend("listen", "listen")
	signals, second := p.attend("connect", "connect")
	pid := p.pid("connect")
	if err := syscall.Kill(p.pid("listen"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.result(first)
	select {
	case got := <-second:
		t.Errorf("it has ended: %+v", got)
	case <-time.After(time.Second):
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("it is gone: %v", err)
	}
	signals <- syscall.SIGTERM
	if got := p.result(second); got.code != 4 || got.err != nil {
		t.Errorf("%+v", got)
	}
}

// DPDK refuses a connection before the other end's device starts, so the application tries again.
func TestAnEarlyConnectionIsTriedAgain(t *testing.T) {
	p := newPods(t)
	p.grace = 2 * time.Second
	p.attend("listen", "listen")
	p.attend("connect", "connect late")
	first := p.pid("connect")
	for deadline := time.Now().Add(time.Minute); p.pid("connect") == first; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it was not started again; it said %q", p.said["connect"])
		}
	}
}

// A signal to end that comes while the application is stopped, to start again, ends it for good.
func TestAnEarlyConnectionIsNotTriedAfterASignal(t *testing.T) {
	p := newPods(t)
	p.grace = 2 * time.Second
	p.attend("listen", "listen")
	signals, ended := p.attend("connect", "end slowly")
	p.pid("connect")
	signals <- syscall.SIGTERM
	if got := p.result(ended); got.err != nil { // the exit status is that of a kill if this test was slow
		t.Errorf("%+v; it said %q", got, p.said["connect"])
	}
}

// The exit status is the application's; a signal also ends the wait for the other end.
func TestHowItEnds(t *testing.T) {
	p := newPods(t)
	_, ended := p.attend("listen", "exit")
	if got := p.result(ended); got.code != 3 || got.err != nil {
		t.Errorf("%+v", got)
	}
	signals, ended := p.attend("connect", "connect")
	signals <- syscall.SIGTERM
	if got := p.result(ended); got.code != 128+15 || got.err != nil {
		t.Errorf("%+v", got)
	}
}

// Only devices with sockets need someone next to them.
func TestWhoIsAttended(t *testing.T) {
	s := setting()
	if s.Attended() {
		t.Error("an application with net_dray is attended")
	}
	for _, driver := range []string{dpdk.NetMemif, dpdk.NetVirtioUser} {
		if s := (Setting{Vdevs: append(setting().Vdevs, dpdk.Vdev{Driver: driver})}); !s.Attended() {
			t.Errorf("an application with %s is not attended", driver)
		}
	}
}

// A device of vhost-user can write to a switch that has ended, which must not end the application.
func TestVhostUserSurvivesItsSwitch(t *testing.T) {
	a := &attendant{setting: Setting{Vdevs: []dpdk.Vdev{{Driver: dpdk.NetVirtioUser}}}}
	app, err := a.start("/bin/sleep", []string{"sleep", "30"})
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", app.pid))
	app.signal(syscall.SIGKILL)
	<-app.ended
	_, ignored, _ := strings.Cut(string(status), "\nSigIgn:\t")
	mask, bad := strconv.ParseUint(strings.Fields(ignored + " -")[0], 16, 64)
	if err := errors.Join(err, bad); err != nil || mask&(1<<(syscall.SIGPIPE-1)) == 0 {
		t.Errorf("SIGPIPE is not ignored: %v, %x", err, mask)
	}
}

// The socket of a vhost-user device is shown to the switch, which sees when the application has ended.
// It does not end with the switch.
func TestASwitchSeesTheSocket(t *testing.T) {
	p := newPods(t)
	p.driver = dpdk.NetVirtioUser
	signals, ended := p.attend("listen", "listen")
	pid := p.pid("listen")
	door := filepath.Join(p.dir, "connect", "doors", "n3")
	for range 2 { // the second is a switch that has started again
		shown, err := meet.Look(t.Context(), door)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(shown.Path) != dpdk.VhostSocket {
			t.Errorf("it shows %s", shown.Path)
		}
		if err := shown.Close(); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := meet.Look(t.Context(), door)
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Close()
	if p.pid("listen") != pid {
		t.Error("the application was started again")
	}
	signals <- syscall.SIGTERM
	if got := p.result(ended); got.code != 4 || got.err != nil {
		t.Errorf("%+v", got)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if shown.Gone(ctx); ctx.Err() != nil {
		t.Error("the switch does not see that the application has ended")
	}
}
