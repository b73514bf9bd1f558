// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// TestOnceKeepsAnswersOnly: yes and unsupported are kept, a failed probe is not.
func TestOnceKeepsAnswersOnly(t *testing.T) {
	for _, test := range []struct {
		name  string
		err   error
		asked int
	}{
		{"yes", nil, 1},
		{"unsupported", fmt.Errorf("wrapped: %w", &Unsupported{What: "x"}), 1},
		{"failed", errors.New("out of memory"), 2},
	} {
		asked, feature := 0, unique(t)
		probe := func() error { asked++; return test.err }
		for i := 0; i < 2; i++ {
			if err := once(feature, probe); !errors.Is(err, test.err) {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if asked != test.asked {
			t.Errorf("%s: asked %d times, want %d", test.name, asked, test.asked)
		}
	}
}

func TestProbeItem(t *testing.T) {
	for _, test := range []struct {
		err  error
		want inventory.Item
	}{
		{nil, inventory.Item{Name: "x", Status: inventory.OK}},
		{fmt.Errorf("on v0: %w", &Unsupported{What: "qdisc hfsc", Why: "this kernel has no sch_hfsc", Fix: "get one"}),
			inventory.Item{Name: "x", Status: inventory.Missing, Reason: "this kernel has no sch_hfsc", Fix: "get one"}},
		{unix.EPERM, inventory.Item{Name: "x", Status: inventory.Unknown, Reason: "operation not permitted", Fix: "run as root"}},
		{unix.ENOMEM, inventory.Item{Name: "x", Status: inventory.Unknown, Reason: "not enough memory: cannot allocate memory", Fix: "free some, or raise the limit of this process's cgroup"}},
		{&fs.PathError{Op: "write", Path: "/x", Err: unix.ENOSPC}, inventory.Item{Name: "x", Status: inventory.Unknown, Reason: "write /x: no space left on device", Fix: "free space there"}},
		{unix.ENOSPC, inventory.Item{Name: "x", Status: inventory.Unknown, Reason: "no space left on device"}},
	} {
		if got := ProbeItem("x", test.err); got != test.want {
			t.Errorf("%v: %+v, want %+v", test.err, got, test.want)
		}
	}
	u := &Unsupported{What: "qdisc hfsc", Why: "this kernel has no sch_hfsc", Fix: "get one"}
	if u.Error() != "qdisc hfsc: unsupported: this kernel has no sch_hfsc (get one)" || !errors.Is(u, ErrUnsupported) {
		t.Error(u)
	}
}

// allProbes are the probes that a link or a qdisc depends on.
func allProbes() map[string]func() error {
	probes := map[string]func() error{
		"veth": ProbeVeth, "bridge": ProbeBridge, "macvlan": ProbeMacvlan, "macvtap": ProbeMacvtap, "tap": ProbeTap,
		"user namespace": func() error { return ProbeUserNetns(UserMapping{HostID: 200000, Size: 65536}) },
	}
	for _, kind := range QdiscKinds() {
		probes["qdisc "+kind] = func() error { return ProbeQdisc(kind) }
	}
	return probes
}

// TestProbesNeedCapabilities: a probe tries the thing itself, so root without
// capabilities gets an error from each.
func TestProbesNeedCapabilities(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "setpriv")
	const powerless = "DRAY_TEST_POWERLESS"
	if os.Getenv(powerless) == "" {
		cmd := exec.Command("setpriv", "--bounding-set", "-all", "--inh-caps", "-all", os.Args[0], "-test.v", "-test.run", "^TestProbesNeedCapabilities$")
		cmd.Env = append(os.Environ(), powerless+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for name, probe := range allProbes() {
		if err := probe(); err == nil {
			t.Errorf("%s: supported, says the probe of a process that may not even try", name)
		}
	}
}

// TestProbesAnswer: as root, every probe gives a definite answer, and each
// unsupported feature says how to get it.
func TestProbesAnswer(t *testing.T) {
	testenv.Root(t)
	for name, probe := range allProbes() {
		err := probe()
		var u *Unsupported
		switch {
		case errors.As(err, &u) && (u.Fix == "" || !strings.Contains(u.Why, "no ")):
			t.Errorf("%s: %v does not say what is missing and how to get it", name, err)
		case err != nil && !errors.Is(err, ErrUnsupported):
			t.Errorf("%s: %v", name, err)
		default:
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestSCTPIsMissing only if the kernel does not know the protocol.
func TestSCTPIsMissing(t *testing.T) {
	for err, missing := range map[error]bool{unix.EPROTONOSUPPORT: true, unix.ESOCKTNOSUPPORT: true, unix.EMFILE: false, unix.ENOMEM: false} {
		if got := lacksSCTP(err); errors.Is(got, ErrUnsupported) != missing || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
