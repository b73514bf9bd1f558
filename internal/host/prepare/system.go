// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// System is the host whose settings are read and changed.
type System struct {
	root   string // the parent of /proc, /sys and /etc
	bootID string // of its kernel
	write  func(path, value string) error
	inUse  func(link string) (string, error)
	fault  func(point string) // kills tests; nil in production
}

// Host is this host.
func Host() (*System, error) {
	boot, err := host.BootID()
	return &System{root: "/", bootID: boot, write: writeExisting, inUse: host.HostNetns.InUse}, err
}

// read is a small file's content, without blanks at its ends.
func (s *System) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.root, name))
	return strings.TrimSpace(string(text)), err
}

// set writes a setting. A kernel file takes an empty value only as an empty line.
func (s *System) set(name, value string) error {
	return s.write(filepath.Join(s.root, name), value+"\n")
}

// writeExisting never creates a file, and never follows a link at its end.
func writeExisting(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func (s *System) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.root, name))
	return err == nil
}

// numbers lists the numbers that follow the prefix in names of a directory,
// ascending; none if there is no such directory.
func (s *System) numbers(dir, prefix string) []int {
	var all []int
	for _, name := range s.names(dir) {
		digits, ok := strings.CutPrefix(name, prefix)
		if n, err := strconv.Atoi(digits); ok && err == nil && n >= 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// names lists a directory; none if it does not exist.
func (s *System) names(dir string) []string {
	entries, err := os.ReadDir(filepath.Join(s.root, dir))
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// linkName is the last element of a symbolic link's target; empty if there is none.
func (s *System) linkName(name string) string {
	target, err := os.Readlink(filepath.Join(s.root, name))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

func (s *System) at(point string) {
	if s.fault != nil {
		s.fault(point)
	}
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
