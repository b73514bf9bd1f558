// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

const (
	// stopGrace is how long a process may take to end before it is killed.
	stopGrace = 3 * time.Second
	// restartPause is how long a process that has ended stays away, and twice as long each time
	// that it ends at once.
	restartPause    = 100 * time.Millisecond
	restartPauseMax = 5 * time.Second
)

// process is one of Open vSwitch's, which is started again whenever it ends.
type process struct {
	name    string
	argv    []string
	env     []string
	log     *slog.Logger
	changed func() // it has started, or ended

	mu      sync.Mutex
	running context.Context // ends with the process; nil: it has never run
	id      host.ProcessID
}

// current is a context that ends with the process, and false if that does not run.
func (p *process) current() (context.Context, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running, p.running != nil && p.running.Err() == nil
}

// identity is the process, or what is no process any more.
func (p *process) identity() host.ProcessID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}

// while is a context that ends with either.
func while(ctx, running context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(running, cancel)
	return both, func() { stop(); cancel() }
}

// keep runs it until ctx ends.
func (p *process) keep(ctx context.Context) {
	runtime.LockOSThread() // the process is killed when the thread that started it ends
	for pause := restartPause; ctx.Err() == nil; {
		began := time.Now()
		err := p.run(ctx)
		if ctx.Err() != nil {
			return
		}
		p.log.Error("it starts again", "program", p.name, "ended", err)
		if time.Since(began) > restartPauseMax {
			pause = restartPause
		}
		_ = host.Sleep(ctx, pause) // the loop ends with ctx
		pause = min(2*pause, restartPauseMax)
	}
}

func (p *process) run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	if err := cmd.Start(); err != nil {
		return err
	}
	id, _ := host.Identify(cmd.Process.Pid) // it fails if that has ended already
	running, ended := context.WithCancel(context.Background())
	p.set(running, id)
	err := cmd.Wait()
	ended()
	p.changed()
	return err
}

func (p *process) set(running context.Context, id host.ProcessID) {
	p.mu.Lock()
	p.running, p.id = running, id
	p.mu.Unlock()
	p.changed()
}

// asleep is how long threads of ovs-vswitchd may sleep that always have something to do. Beyond it,
// they wait for something that will not happen. Tests have less time.
var asleep = 10 * time.Second

// The names of those threads begin so. The first poll ports; they hang if a hostile application makes
// its bell block. The others read what all applications say, and hang if one sends half a message; DPDK
// 23.07 gave them the second name.
var restless = [][]string{{"pmd-"}, {"vhost-events", "dpdk-vhost-evt"}}

// endIfAsleep ends the process whenever all its threads of these names have slept for so long, so
// that it is started again, until ctx ends.
func (p *process) endIfAsleep(ctx context.Context, threads []string, longest time.Duration) {
	var mark string
	since := time.Now()
	for host.Sleep(ctx, longest/10) == nil {
		now := p.identity().SleepMark(threads)
		if now == "" || now != mark {
			mark, since = now, time.Now()
			continue
		}
		if time.Since(since) >= longest {
			p.log.Error("it hangs, which an application can bring about; it is killed", "program", p.name, "threads", threads)
			p.identity().Kill()
			since = time.Now()
		}
	}
}

// reapEvery is the interval at which processes are looked for whose parents have ended. The first
// process of a container inherits them.
const reapEvery = 5 * time.Second

// reap takes leave of such processes until ctx ends. This process waits for its own at once, so
// one that is still there at the next look is not its own.
func reap(ctx context.Context) {
	for last := 0; host.Sleep(ctx, reapEvery) == nil; {
		var info unix.Siginfo
		pid := 0
		if unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil {
			pid = endedPID(&info)
		}
		if pid != 0 && pid == last {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		last = pid
	}
}

// endedPID is the process of which waitid reports: on 64-bit Linux, the fifth word.
func endedPID(info *unix.Siginfo) int {
	return int(binary.NativeEndian.Uint32((*[unsafe.Sizeof(*info)]byte)(unsafe.Pointer(info))[16:20]))
}
