// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// state describes everything that a link may change. In each namespace:
// interfaces, addresses, alternative names, qdiscs, promiscuity. Also files
// and mounts in its directory, cgroups, processes, and this process's own
// descriptors and children.
func (r *Rig) state() string {
	r.t.Helper()
	var b strings.Builder
	for _, ns := range r.namespaces() {
		describeNetns(r.t, &b, ns)
	}
	points, err := host.MountsAt(r.Spec.Dir)
	testenv.Must(r.t, err)
	for _, point := range points {
		fmt.Fprintf(&b, "mount %s\n", point)
	}
	files, err := os.ReadDir(r.Spec.Dir)
	testenv.Must(r.t, err)
	for _, f := range files {
		fmt.Fprintf(&b, "file %s\n", f.Name())
	}
	r.describeSockets(&b)
	describeCgroup(r.t, &b, r.Spec.Cgroup)
	if r.beside != nil {
		b.WriteString(r.beside())
	}
	return b.String()
}

// namespaces are the namespaces that exist before the link.
func (r *Rig) namespaces() []host.Netns {
	r.t.Helper()
	var all []host.Netns
	for _, pattern := range []string{"*.net", "hosts/*.net"} {
		files, err := filepath.Glob(filepath.Join(r.dir, pattern))
		testenv.Must(r.t, err)
		for _, f := range files {
			all = append(all, host.Netns{Path: f})
		}
	}
	return all
}

func describeNetns(t *testing.T, b *strings.Builder, ns host.Netns) {
	t.Helper()
	for _, name := range interfaces(t, ns) {
		text, err := describeLink(ns, name)
		if err != nil && !slices.Contains(interfaces(t, ns), name) {
			continue // the kernel has removed it meanwhile, with its peer's namespace
		}
		testenv.Must(t, err)
		b.WriteString(text)
	}
}

// interfaces are the names of all interfaces in a namespace, lo included.
func interfaces(t *testing.T, ns host.Netns) (names []string) {
	t.Helper()
	testenv.Must(t, ns.Do(func() error {
		all, err := net.Interfaces()
		for _, i := range all {
			names = append(names, i.Name)
		}
		return err
	}))
	return names
}

func describeLink(ns host.Netns, name string) (string, error) {
	s, err := ns.ReadLink(name)
	if err != nil {
		return "", err
	}
	qdisc, err := ns.ReadQdisc(name)
	if err != nil {
		return "", err
	}
	offloads, err := ns.Offloads(name)
	addrs := slices.DeleteFunc(s.Addrs, func(p netip.Prefix) bool { return p.Addr().IsLinkLocalUnicast() })
	return fmt.Sprintf("link %s in %s: mac %s mtu %d up %v promiscuous %d names %v addresses %v qdisc %s offloads %s\n",
		name, filepath.Base(ns.Path), s.MAC, s.MTU, s.Up, s.Promiscuity, s.AltNames, addrs, qdisc.Kind, offloads), err
}

func describeCgroup(t *testing.T, b *strings.Builder, c host.Cgroup) {
	t.Helper()
	pids, err := c.Processes()
	testenv.Must(t, err)
	for _, pid := range pids {
		name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		fmt.Fprintf(b, "process %s", name)
	}
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		children, err := filepath.Glob(pattern + c.Path + "/*/")
		testenv.Must(t, err)
		for _, child := range children {
			fmt.Fprintf(b, "cgroup %s\n", child)
		}
	}
}

// Clean fails the test unless the state is as before the link.
func (r *Rig) Clean(when string) {
	r.t.Helper()
	if after := r.state(); after != r.before {
		r.t.Errorf("%s, something is left:\nbefore:\n%s\nafter:\n%s", when, r.before, after)
	}
}

// settle waits until the state is as before the link, or patience ends.
func (r *Rig) settle() {
	r.t.Helper()
	r.becomes(r.before)
}

// becomes waits until the state is this one, in any order, or patience ends. It returns the
// last state.
func (r *Rig) becomes(want string) (now string) {
	r.t.Helper()
	want = sortedLines(want)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if now = sortedLines(r.state()); now == want || time.Now().After(deadline) {
			return now
		}
	}
}

// leaks reports the network namespaces that this process holds open, and its
// children. A killed child is reaped shortly after.
func leaks(t *testing.T) (open int, children []string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		open, children = openNamespaces(t), childProcesses(t)
		if len(children) == 0 || time.Now().After(deadline) {
			return open, children
		}
	}
}

func openNamespaces(t *testing.T) int {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	testenv.Must(t, err)
	open := 0
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && strings.HasPrefix(target, "net:[") {
			open++
		}
	}
	return open
}

func childProcesses(t *testing.T) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	testenv.Must(t, err)
	var children []string
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || err != nil {
			continue // it has ended in the meantime
		}
		text := string(b)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			children = append(children, text[:strings.LastIndexByte(text, ')')+1])
		}
	}
	return children
}

// withoutNetns removes one namespace from a state.
func withoutNetns(state string, ns host.Netns) string {
	var kept strings.Builder
	for _, line := range strings.SplitAfter(state, "\n") {
		if !strings.Contains(line, " in "+filepath.Base(ns.Path)+":") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
