// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

func TestHugetlbPath(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"v1":     {"11:cpu,cpuacct:/a\n4:hugetlb:/b\n0::/c\n", "/b"},
		"v2":     {"0::/dray/c/du/run\n", "/dray/c/du/run"},
		"hybrid": {"4:memory:/dray/c/du/run\n0::/dray/c/du.engine\n", "/dray/c/du.engine"},
		"empty":  {"", ""},
	} {
		if got := hugetlbPath(test.text); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A process that runs outside is refused; one that has ended is nowhere.
func TestCheckHugePages(t *testing.T) {
	s := runtime.Spec{Function: chain.Function{HugePages: []chain.HugePages{{Size: 2 << 20, Limit: 4 << 20}}}}
	within := host.Cgroup{Path: "/dray/nowhere"}
	if err := CheckHugePages(s, within, os.Getpid()); !errors.Is(err, host.ErrUnsupported) {
		t.Errorf("outside: %v", err)
	}
	ended := exec.Command("true")
	testenv.Must(t, ended.Start())
	defer func() { testenv.Must(t, ended.Wait()) }()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := host.Identify(ended.Process.Pid); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
	}
	if err := CheckHugePages(s, within, ended.Process.Pid); err != nil {
		t.Errorf("ended: %v", err)
	}
}
