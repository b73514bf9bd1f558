// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/test/testenv"
)

// hostile journals, and what the refusal says.
var hostile = map[string]struct{ text, says string }{
	"not JSON":             {"hello\n", "line 1: malformed"},
	"a path":               {`{"boot":"boot-1","key":{"kind":"hugepages","size":2097152},"path":"/etc/passwd","from":"1","to":"2"}` + "\n", `unknown field "path"`},
	"an unknown kind":      {`{"boot":"boot-1","key":{"kind":"file","name":"/etc/passwd"},"from":"1","to":"2"}` + "\n", "is no setting that dray changes"},
	"no kind":              {`{"boot":"boot-1","from":"1","to":"2"}` + "\n", "is no setting that dray changes"},
	"a slice elsewhere":    {`{"boot":"boot-1","key":{"kind":"programs","name":"../../../etc"},"from":"0","to":"1"}` + "\n", "is no setting that dray changes"},
	"a device elsewhere":   {`{"boot":"boot-1","key":{"kind":"driver","name":"../../../../etc"},"from":"ixgbe","to":"vfio-pci (driver_override)"}` + "\n", "is no setting that dray changes"},
	"a driver elsewhere":   {`{"boot":"boot-1","key":{"kind":"driver","name":"` + card + `"},"from":"../../../../../tmp","to":"ixgbe"}` + "\n", "is no value of it"},
	"a name for a number":  {`{"boot":"boot-1","key":{"kind":"interrupt","number":1,"name":"../x"},"from":"0","to":"1"}` + "\n", "is no setting that dray changes"},
	"a negative number":    {`{"boot":"boot-1","key":{"kind":"interrupt","number":-1},"from":"0","to":"1"}` + "\n", "is no setting that dray changes"},
	"text for a number":    {`{"boot":"boot-1","key":{"kind":"governor","number":"0/../../x"},"from":"a","to":"b"}` + "\n", "malformed"},
	"pages of text":        {`{"boot":"boot-1","key":{"kind":"hugepages","size":2097152},"from":"rm","to":"3"}` + "\n", "is no value of it"},
	"pages by the billion": {`{"boot":"boot-1","key":{"kind":"hugepages","size":2097152},"from":"99999999999","to":"3"}` + "\n", "is no value of it"},
	"a governor of lines":  {`{"boot":"boot-1","key":{"kind":"governor"},"from":"a\nb","to":"b"}` + "\n", "is no value of it"},
	"CPUs of text":         {`{"boot":"boot-1","key":{"kind":"interrupt","number":24},"from":"x","to":"0-7"}` + "\n", "is no value of it"},
	"a mask of text":       {`{"boot":"boot-1","key":{"kind":"kernel work"},"from":"xyz","to":"ff"}` + "\n", "is no value of it"},
	"two objects":          {`{"boot":"boot-1","key":{"kind":"kernel work"},"from":"f","to":"ff"}{}` + "\n", "more follows"},
	"after a good line":    {`{"boot":"boot-1","key":{"kind":"hugepages","size":2097152},"from":"0","to":"3"}` + "\nx\n", "line 2: malformed"},
	"too long":             {strings.Repeat(" ", maxJournal) + "\n", "longer than"},
}

// write makes a journal of the text.
func write(t *testing.T, state, text string) {
	t.Helper()
	testenv.Must(t, os.WriteFile(filepath.Join(state, fileJournal), []byte(text), 0o600))
}

// A journal with anything but settings and their values changes nothing, not even by its good lines.
func TestHostileJournal(t *testing.T) {
	s := newFake(t, map[string]string{"etc/passwd": "root:x\n", "etc/cpuset.cpus": "0\n", "etc/driver_override": "x\n", "tmp/bind": "x\n"})
	before := snapshot(t, s)
	for name, test := range hostile {
		state := t.TempDir()
		write(t, state, test.text)
		if _, err := s.Revert(context.Background(), state); err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "nothing was restored") {
			t.Errorf("%s: error %v does not say %q", name, err, test.says)
		}
		if _, err := s.Apply(context.Background(), state, Request{HugePages: []Pages{{page2M, 9}}}); err == nil {
			t.Errorf("%s: applied on top of it", name)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
		t.Error(diff)
	}
}

// What is well formed, and still no change of ours, is refused by the device.
func TestJournalOfAnotherDevice(t *testing.T) {
	disk := "0000:02:00.0"
	for name, test := range map[string]struct{ device, driver, says string }{
		"a disk":    {disk, "ixgbe", "is no network card"},
		"an own id": {card, "ixgbe (driver_override)", "sets driver_override for vfio-pci only"},
	} {
		s := newFake(t, map[string]string{"sys/bus/pci/devices/" + disk + "/class": "0x010000\n", "sys/bus/pci/devices/" + disk + "/driver_override": "(null)\n"})
		before, state := snapshot(t, s), t.TempDir()
		now, err := s.driver(test.device)
		testenv.Must(t, err)
		write(t, state, `{"boot":"boot-1","key":{"kind":"driver","name":"`+test.device+`"},"from":"`+test.driver+`","to":"`+now+`"}`+"\n")
		report, err := s.Revert(context.Background(), state)
		if err == nil || !strings.Contains(err.Error(), test.says) || report.Changes[0].Outcome != Failed {
			t.Errorf("%s: %v, %v", name, lines(report), err)
		}
		if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A torn last line belongs to a change that was not made.
func TestTornJournal(t *testing.T) {
	s, state := newFake(t, nil), t.TempDir()
	write(t, state, `{"boot":"boot-1","key":{"kind":"hugepages","size":2097152},"from":"1","to":"3","done":true}`+"\n"+`{"boot":"boot-1","key":{"kind":"gov`)
	report, err := s.Revert(context.Background(), state)
	if err != nil || len(report.Changes) != 1 || report.Changes[0].Outcome != Restored {
		t.Errorf("%v, %v", lines(report), err)
	}
	if _, err := os.Stat(filepath.Join(state, fileJournal)); !missing(err) {
		t.Errorf("the journal is left: %v", err)
	}
}

// A journal that is a link or a pipe is not opened.
func TestJournalOfNoFile(t *testing.T) {
	s, state := newFake(t, nil), t.TempDir()
	target := filepath.Join(state, "target")
	testenv.Must(t, os.WriteFile(target, []byte("kept"), 0o600))
	testenv.Must(t, os.Symlink(target, filepath.Join(state, fileJournal)))
	if _, err := s.Apply(context.Background(), state, Request{HugePages: []Pages{{page2M, 9}}}); err == nil {
		t.Error("followed a link")
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "kept" {
		t.Errorf("%s, %v", text, err)
	}
}

// What fails stays in the journal for another attempt.
func TestRevertThatFails(t *testing.T) {
	s, state := newFake(t, nil), t.TempDir()
	before := snapshot(t, s)
	_, err := s.Apply(context.Background(), state, everything(s))
	testenv.Must(t, err)
	class := "sys/bus/pci/devices/" + card + "/class"
	testenv.Must(t, s.set(class, "0x010000"))
	if _, err := s.Revert(context.Background(), state); err == nil || !strings.Contains(err.Error(), "driver of "+card) {
		t.Error(err)
	}
	testenv.Must(t, s.set(class, "0x020000"))
	report, err := s.Revert(context.Background(), state)
	if err != nil || len(report.Changes) != 1 {
		t.Errorf("%v, %v", lines(report), err)
	}
	if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
		t.Error(diff)
	}
}

// known are the files that a journal can name.
var known = regexp.MustCompile(`^(sys/kernel/mm/hugepages/hugepages-[0-9]+kB/nr_hugepages|sys/devices/system/cpu/cpufreq/policy[0-9]+/scaling_governor|` +
	`proc/irq/[0-9]+/smp_affinity_list|proc/irq/default_smp_affinity|sys/devices/virtual/workqueue/cpumask|sys/fs/cgroup/(init\.scope|system\.slice|user\.slice)/cpuset\.cpus)$`)

// FuzzJournal: an accepted journal names known settings only.
func FuzzJournal(f *testing.F) {
	for _, test := range hostile {
		if len(test.text) < 4096 {
			f.Add([]byte(test.text))
		}
	}
	f.Add([]byte(`{"boot":"boot-1","key":{"kind":"hugepages","size":2097152},"from":"1","to":"3","done":true}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := parseJournal(text, "boot-1")
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.Key.Kind == kindDriver {
				if strings.ContainsAny(e.Key.Name+e.From+e.To, "/\n") {
					t.Errorf("%+v", e)
				}
			} else if !known.MatchString(e.Key.file()) || strings.Contains(e.From+e.To, "\n") {
				t.Errorf("%+v names %s", e, e.Key.file())
			}
		}
	})
}

// A state directory that others can write to has no journal of ours.
func TestForeignStateDirectory(t *testing.T) {
	s, state := newFake(t, nil), t.TempDir()
	testenv.Must(t, os.Chmod(state, 0o777))
	if _, err := s.Revert(context.Background(), state); err == nil || !strings.Contains(err.Error(), "another user owns it or may write to it") {
		t.Error(err)
	}
}
