// SPDX-License-Identifier: Apache-2.0

// Package sockpath names the paths by which programs reach sockets: a socket's address is
// much shorter than the longest path of a file.
package sockpath

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
)

// maxPath is the longest path of a socket in bytes, without NUL (unix(7)).
const maxPath = 107

// Links is the directory of the symbolic links that Dir names. Its path is short, only root
// can write to it, and it ends with the machine's boot.
const Links = "/run/dray-sockets"

// Dir is the path by which programs reach sockets of these names in a directory: its own,
// or if that is too long for one of them, the path of Link. host.ShortenDir makes that.
func Dir(dir string, names ...string) string {
	for _, name := range names {
		if len(dir)+1+len(name) > maxPath {
			return Link(dir)
		}
	}
	return dir
}

// Link is the short path of a directory.
func Link(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(Links, hex.EncodeToString(sum[:8]))
}
