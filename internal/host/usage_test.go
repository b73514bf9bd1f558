// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"
	"time"
)

func TestCPUTimeOfBothVersions(t *testing.T) {
	for _, c := range []struct {
		text string
		v2   bool
		want time.Duration
	}{
		{"123456789\n", false, 123456789},
		{"usage_usec 5000\nuser_usec 1\n", true, 5 * time.Millisecond},
		{"nr_periods 0\nusage_usec 7\n", true, 7 * time.Microsecond},
	} {
		if got, err := cpuTime(c.text, c.v2); err != nil || got != c.want {
			t.Errorf("%q: %v, error %v", c.text, got, err)
		}
	}
	for _, bad := range []string{"", "user_usec 1\n", "x usage_usec 1\n"} {
		if got, err := cpuTime(bad, true); err == nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
}

// TestMeterSeesWhatRunsBelow burns CPU time in a child group.
func TestMeterSeesWhatRunsBelow(t *testing.T) {
	c := testCgroup(t)
	child := c.Child("tools")
	create(t, child, Limits{})
	m, err := NewMeter(c)
	must(t, err)
	before, err := m.Read()
	must(t, err)
	cmd := start(t, Place{Netns: HostNetns, Cgroup: child}, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	must(t, cmd.Wait())
	after, err := m.Read()
	must(t, err)
	if after.CPU <= before.CPU || after.At <= before.At || after.CPU-before.CPU > 100*(after.At-before.At) {
		t.Errorf("from %+v to %+v", before, after)
	}
}
