// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// archive writes an initramfs: files, and the directories that lead to them
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	w    *cpio.Writer
	made map[string]bool // directories
}

func newArchive(w io.Writer) *archive { return &archive{cpio.NewWriter(w), map[string]bool{}} }

// file adds a file, and the directories that lead to it.
func (a *archive) file(name string, perm int, size int64, content io.Reader) error {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if size < 0 || size > 1<<32-1 { // the header has 32 bits
		return fmt.Errorf("initramfs: %s has %d bytes", name, size)
	}
	for i, r := range name {
		if dir := name[:i]; r == '/' && !a.made[dir] {
			a.made[dir] = true
			if err := a.w.WriteHeader(&cpio.Header{Name: dir, Mode: cpio.TypeDir | 0o755, Links: 2}); err != nil {
				return fmt.Errorf("initramfs: %s: %w", dir, err)
			}
		}
	}
	header := &cpio.Header{Name: name, Mode: cpio.TypeReg | cpio.FileMode(perm&0o7777), Size: size, Links: 1}
	if err := a.w.WriteHeader(header); err != nil {
		return fmt.Errorf("initramfs: %s: %w", name, err)
	}
	if n, err := io.CopyN(a.w, content, size); err != nil {
		return fmt.Errorf("initramfs: %s: %d of %d bytes: %w", name, n, size, err)
	}
	return nil
}

// close ends the archive.
func (a *archive) close() error { return a.w.Close() }
