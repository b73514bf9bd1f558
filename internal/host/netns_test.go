// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

func TestNetnsDo(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	want, err := ns.Inode()
	must(t, err)
	hostInode, err := HostNetns.Inode()
	must(t, err)
	if want == hostInode {
		t.Fatal("the new namespace is the host's")
	}
	must(t, ns.Do(func() error {
		ifaces, err := net.Interfaces()
		if err != nil || len(ifaces) != 1 || ifaces[0].Name != "lo" || ifaces[0].Flags&net.FlagUp == 0 {
			t.Errorf("interfaces %v (%v), want lo alone and up", ifaces, err)
		}
		// HostNetns stays the host's, whichever thread asks.
		if again, err := HostNetns.Inode(); err != nil || again != hostInode {
			t.Errorf("from inside, the host's namespace is %d (%v), want %d", again, err, hostInode)
		}
		return HostNetns.Do(func() error {
			var st unix.Stat_t
			if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil || st.Ino != hostInode {
				t.Errorf("HostNetns.Do is in %d (%v), want %d", st.Ino, err, hostInode)
			}
			return nil
		})
	}))
	wantErr := errors.New("mine")
	if err := ns.Do(func() error { return wantErr }); !errors.Is(err, wantErr) {
		t.Errorf("error %v", err)
	}
	if err := ns.Do(func() error { runtime.Goexit(); return nil }); err == nil {
		t.Error("Goexit inside went unnoticed")
	}
}

// TestNetnsDoLeavesNoThreads: no thread stays in the namespace, and the main thread
// never enters it.
func TestNetnsDoLeavesNoThreads(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	inode, err := ns.Inode()
	must(t, err)
	inside := func() int {
		n := 0
		tasks, _ := filepath.Glob("/proc/self/task/*/ns/net")
		for _, task := range tasks {
			var st unix.Stat_t
			if unix.Stat(task, &st) == nil && st.Ino == inode {
				n++
			}
		}
		return n
	}
	var wg sync.WaitGroup
	for i := 0; i < 32; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := ns.Do(func() error {
				var st unix.Stat_t
				if err := unix.Stat("/proc/self/ns/net", &st); err != nil || st.Ino == inode {
					t.Errorf("the main thread is inside (%v)", err)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	waitFor(t, "all threads to leave the namespace", func() bool { return inside() == 0 })
}

func TestCreateNetnsTwice(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	inode, err := ns.Inode()
	must(t, err)
	if err := CreateNetns(ns.Path); err == nil {
		t.Error("made a namespace over an existing one")
	}
	if again, err := ns.Inode(); err != nil || again != inode {
		t.Errorf("the namespace changed from %d to %d (%v)", inode, again, err)
	}
	if !ns.Exists() {
		t.Error("does not exist")
	}
	must(t, removeNamespace(ns.Path))
	if ns.Exists() || exists(ns.Path) {
		t.Error("exists after removal")
	}
	must(t, removeNamespace(ns.Path)) // again
	if err := ns.Do(func() error { return nil }); err == nil {
		t.Error("entered a namespace that is gone")
	}
}

func TestPinNetns(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	cmd := start(t, Place{Netns: ns}, "exec sleep 1000")
	pinned := Netns{Path: filepath.Join(testDir(t), "pinned")}
	must(t, PinNetns("/proc/"+itoa(cmd.Process.Pid)+"/ns/net", pinned.Path))
	a, err := ns.Inode()
	must(t, err)
	if b, err := pinned.Inode(); err != nil || a != b {
		t.Errorf("pinned %d (%v), want %d", b, err, a)
	}
	if err := PinNetns("/proc/self/status", pinned.Path+"2"); err == nil {
		t.Error("pinned a file that is no namespace")
	}
}

func TestExistsNeedsANamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plain")
	must(t, os.WriteFile(file, nil, 0o600))
	if (Netns{Path: file}).Exists() {
		t.Error("a plain file passes for a namespace")
	}
	if !HostNetns.Exists() {
		t.Error("the host's namespace does not exist")
	}
}

func TestThrowawayNetns(t *testing.T) {
	testenv.Root(t)
	var inside Netns
	must(t, InThrowawayNetns(func(ns Netns) error {
		inside = ns
		a, err := ns.Inode()
		must(t, err)
		if b, err := HostNetns.Inode(); err != nil || a == b {
			t.Errorf("not a namespace of its own (%v)", err)
		}
		return CreateBridge(Iface{Netns: ns, Name: "b0", MTU: 1500})
	}))
	waitFor(t, "the namespace to go", func() bool { return !inside.Exists() })
}

func TestUserNetns(t *testing.T) {
	testenv.Root(t)
	dir := testDir(t)
	user, net := dir+"/user", dir+"/net"
	must(t, CreateUserNetns(user, net, UserMapping{HostID: 200000, Size: 65536}))
	t.Cleanup(func() {
		must(t, removeNamespace(net))
		must(t, removeNamespace(user))
	})
	out, err := exec.Command("nsenter", "--user="+user, "--net="+net, "sh", "-c", "id -u; cat /proc/self/uid_map; cat /sys/class/net/lo/flags; ls /proc/self/fd").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(string(out), "\n")
	if lines[0] != "0" || strings.Join(strings.Fields(lines[1]), " ") != "0 200000 65536" {
		t.Errorf("inside: %q", lines)
	}
	ns := Netns{Path: net}
	must(t, CreateVeth(Iface{Netns: ns, Name: "v0", MTU: 1500, MAC: mac(t, "02:00:00:00:00:01")},
		Iface{Netns: ns, Name: "v1", MTU: 1500, MAC: mac(t, "02:00:00:00:00:02")}))
	if err := CreateUserNetns(user, net, UserMapping{HostID: 200000, Size: 1}); err == nil {
		t.Error("made namespaces over existing ones")
	}
}

func TestUserNetnsFailureLeavesNoHolder(t *testing.T) {
	testenv.Root(t)
	dir := testDir(t)
	// The second file exists already.
	must(t, os.WriteFile(dir+"/net", nil, 0o600))
	if err := CreateUserNetns(dir+"/user", dir+"/net", UserMapping{HostID: 200000, Size: 1}); err == nil {
		t.Error("no error")
	}
	if (Netns{Path: dir + "/user"}).Exists() {
		t.Error("a user namespace is pinned after all")
	}
}

// TestALimitOfNamespacesIsNamed: the kernel's word for it is that there is no space left. The
// limit is a user namespace's own, so another process asks.
func TestALimitOfNamespacesIsNamed(t *testing.T) {
	if os.Getenv("DRAY_TEST_NO_NETNS") == "" {
		testenv.Root(t)
		cmd := exec.Command(os.Args[0], "-test.run=^TestALimitOfNamespacesIsNamed$", "-test.v")
		cmd.Env = append(os.Environ(), "DRAY_TEST_NO_NETNS=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	must(t, os.WriteFile("/proc/sys/user/max_net_namespaces", []byte("0"), 0))
	item := ProbeItem("x", InThrowawayNetns(func(Netns) error { return nil }))
	if item.Status != inventory.Unknown || !strings.Contains(item.Fix, "user.max_net_namespaces") {
		t.Errorf("%+v", item)
	}
}
