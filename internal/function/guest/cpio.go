// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"fmt"
	"io"
	"path"
	"strings"
)

// The types of a file in an initramfs, as in st_mode (inode(7)).
const (
	modeDir  = 0o040000
	modeFile = 0o100000
)

// cpioWriter writes an archive in the format "newc", which the kernel takes as
// an initramfs (Documentation/driver-api/early-userspace/buffer-format.rst).
type cpioWriter struct {
	w     io.Writer
	inode int
	made  map[string]bool // directories
	err   error
}

func newCPIO(w io.Writer) *cpioWriter { return &cpioWriter{w: w, made: map[string]bool{}} }

// file adds a file, and the directories that lead to it.
func (c *cpioWriter) file(name string, perm int, size int64, content io.Reader) error {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	c.parents(name)
	c.entry(name, modeFile|perm&0o7777, size)
	if c.err != nil {
		return c.err
	}
	n, err := io.CopyN(c.w, content, size)
	if err != nil {
		c.err = fmt.Errorf("initramfs: %s: %d of %d bytes: %w", name, n, size, err)
		return c.err
	}
	c.pad(size)
	return c.err
}

func (c *cpioWriter) parents(name string) {
	for i, r := range name {
		if dir := name[:i]; r == '/' && !c.made[dir] {
			c.made[dir] = true
			c.entry(dir, modeDir|0o755, 0)
		}
	}
}

// entry writes the header and name of an entry.
func (c *cpioWriter) entry(name string, mode int, size int64) {
	if size < 0 || size > 1<<32-1 {
		c.err = fmt.Errorf("initramfs: %s has %d bytes", name, size)
	}
	if c.err != nil {
		return
	}
	c.inode++
	links := 1
	if mode&modeDir != 0 {
		links = 2
	}
	header := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		c.inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, len(name)+1, 0)
	_, c.err = io.WriteString(c.w, header+name+"\x00")
	c.pad(int64(len(header) + len(name) + 1))
}

// pad fills up to the next multiple of 4 bytes after n.
func (c *cpioWriter) pad(n int64) {
	if fill := (4 - n%4) % 4; fill > 0 && c.err == nil {
		_, c.err = c.w.Write(make([]byte, fill))
	}
}

// close ends the archive.
func (c *cpioWriter) close() error {
	c.inode = -1 // the trailer's is 0
	c.entry("TRAILER!!!", 0, 0)
	return c.err
}
