// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// attackInTurn is every attacker once, on one chain.
func attackInTurn(s *session) {
	s.peers("hostile-brief", "port-plain", "", func(c *scene) {
		for _, attacker := range []string{"memory", "bells", "control", "resources"} {
			c.attack("hostile", attacker, "p0", s.time/2)
		}
	})
}

// attackBells rings the victim's bells, with descriptors attached.
func attackBells(s *session) {
	s.peers("hostile-bells", "port-plain", "", func(c *scene) {
		fds := c.counts("victim")["fds"]
		c.attack("hostile", "bells", "p0", s.time)
		c.until("the victim has closed what came", func() bool { return c.counts("victim")["fds"] <= fds+4 })
	})
}

// attackControl is hostile at the broker's door, while the operator looks at the link
// and moves the neighbour's.
func attackControl(s *session) {
	s.peers("hostile-control", "port-plain", "", func(c *scene) {
		fds := c.brokerFiles()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for end := time.Now().Add(s.time); time.Now().Before(end); time.Sleep(time.Second) {
				if out, code := c.dray("status", c.name); code != 0 {
					c.Errorf("dray status: %d: %s", code, out)
				}
			}
		}()
		c.attack("hostile", "control", "p0", s.time)
		<-done
		c.until("the broker has closed what came", func() bool { return c.brokerFiles() <= fds+8 })
	})
}

// attackResources takes what the kernel gives, and looks at what is left to others.
func attackResources(s *session) {
	s.peers("hostile-resources", "port-plain", "", func(c *scene) {
		before := freeMemory(s)
		c.attack("hostile", "resources", "p0", s.time)
		c.leavesRootItsShare()
		const limit = 256 << 20 // of the hostile function
		if lost := before - freeMemory(s); lost > 2*limit {
			c.Logf("the host has %d MiB less", lost>>20)
			s.count("MiB that the host lost", uint64(lost>>20))
		}
	})
}

// leavesRootItsShare checks that the host's root can still have what functions also take.
func (c *scene) leavesRootItsShare() {
	c.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		c.finding("the host's root has no inotify instance left: %v", err)
		return
	}
	_ = unix.Close(fd)
}

// freeMemory is what the kernel calls available, in bytes.
func freeMemory(s *session) int64 {
	s.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		s.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "MemAvailable:")
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		s.Fatal(err)
	}
	return n << 10
}

// counts is the last line of a victim's output.
func (c *scene) counts(function string) map[string]uint64 {
	c.Helper()
	lines := strings.Split(strings.TrimSpace(c.log(function)), "\n")
	counts := map[string]uint64{}
	if err := decode(lines[len(lines)-1], &counts); err != nil {
		c.Errorf("the last output of %s is no count: %v", function, err)
	}
	return counts
}

// brokerFiles is how many files the broker has open.
func (c *scene) brokerFiles() int { return openFiles(c.broker()) }

func openFiles(p host.ProcessID) int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
	if err != nil {
		return 1 << 30
	}
	return len(entries)
}
