// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/kube/internal/meet"
	"github.com/drayage/dray/test/testenv"
)

// pod has a DPDK application, in a mount namespace and with a user of its own, and shows its socket.
type pod struct {
	t    *testing.T
	end  int    // of the link
	dir  string // only it sees what is in there
	door string
	mode string // of testpmd
	log  string
	stop func()
}

func newPod(t *testing.T, end int, mode string) *pod {
	t.Helper()
	dir, err := os.MkdirTemp("", "dray-pod-")
	testenv.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &pod{t: t, end: end, dir: filepath.Join(dir, "run"), door: filepath.Join(dir, "door"), log: filepath.Join(dir, "log"), mode: mode, stop: func() {}}
	testenv.Must(t, errors.Join(os.Chmod(dir, 0o755), os.Mkdir(p.dir, 0o755))) // for the application's user
	t.Cleanup(func() { p.stop() })
	return p
}

// start runs the application, and shows its socket as dray-eal does. The application ignores SIGPIPE:
// net_virtio_user sends to a switch that has ended.
func (p *pod) start() {
	p.t.Helper()
	log, err := os.Create(p.log)
	testenv.Must(p.t, err)
	defer log.Close()
	inside := fmt.Sprintf(`mount -t tmpfs -o mode=777 tmpfs %[1]s && umask 0 && trap '' PIPE && exec setpriv --reuid 31001 --regid 31001 --clear-groups \
		dpdk-testpmd --lcores 0@0-1,1@0-1 --no-huge --no-shconf -m 64 --single-file-segments --no-pci --no-telemetry \
		--vdev net_virtio_user0,path=%[1]s/vhost.sock,server=1,queue_size=1024 -- --total-num-mbufs=2048 --forward-mode=%[2]s --txpkts=1000 --stats-period=1`, p.dir, p.mode)
	cmd := exec.Command("unshare", "--mount", "sh", "-c", inside)
	cmd.Stdout, cmd.Stderr = log, log
	testenv.Must(p.t, cmd.Start())
	path := fmt.Sprintf("/proc/%d/root%s/vhost.sock", cmd.Process.Pid, p.dir)
	unshow := p.show(path)
	p.stop = func() {
		p.stop = func() {}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		unshow()
	}
}

// restart kills the application and starts another. With DPDK 22.11, net_virtio_user is certain to
// connect again to only one other switch.
func (p *pod) restart() {
	p.t.Helper()
	p.stop()
	p.start()
}

// show shows a file to the switch, as soon as it exists.
func (p *pod) show(path string) (unshow func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- meet.Show(ctx, p.door, path, func(ctx context.Context) error { return appears(ctx, path) })
	}()
	return func() {
		cancel()
		testenv.Must(p.t, <-ended)
	}
}

func appears(ctx context.Context, path string) error {
	for {
		if _, err := os.Lstat(path); err == nil {
			return nil
		}
		if err := host.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// reports are how many packets the application had got, each second.
func (p *pod) reports() (all []int) {
	text, err := os.ReadFile(p.log)
	testenv.Must(p.t, err)
	for _, report := range strings.Split(string(text), "RX-packets:")[1:] {
		n, _ := strconv.Atoi(strings.Fields(report + " 0")[0])
		all = append(all, n)
	}
	return all
}

// settle is how long applications may take to go on with another switch.
var settle = testenv.Patient(8 * time.Second)

// receivesAgain is receives after the switch has ended. net_virtio_user of DPDK 22.11 does not always
// go on with the next one; then the applications are restarted, as a kubelet would.
func (p *pod) receivesAgain(what string, from *pod) {
	p.t.Helper()
	old := len(p.reports())
	for deadline := time.Now().Add(settle); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if all := p.reports(); len(all) >= old+2 && all[len(all)-1] >= all[old]+100 {
			p.t.Logf("%s: packets come again", what)
			return
		}
	}
	p.t.Logf("%s: the applications are restarted", what)
	from.restart()
	p.restart()
	p.receives(what)
}

// receives waits until packets have come since the first report after it was called.
func (p *pod) receives(what string) {
	p.t.Helper()
	began, old := time.Now(), len(p.reports())
	await(p.t, func() string {
		if all := p.reports(); len(all) < old+2 || all[len(all)-1] < all[old]+100 {
			text, _ := os.ReadFile(p.log)
			return fmt.Sprintf("%s: %d reports before, of %v packets\n%s\n%s", what, old, all, text[:min(len(text), 1000)], text[max(0, len(text)-1000):])
		}
		return ""
	})
	p.t.Logf("%s: packets come after %v", what, time.Since(began).Round(100*time.Millisecond))
}
