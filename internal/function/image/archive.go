// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/drayage/dray/internal/host"
)

// archiveLimit bounds how long the archive of an image may take to be written.
const archiveLimit = time.Hour

// Archive writes the image as a tar file that docker import reads, and returns its
// SHA-256 sum. The same files give the same archive: timestamps later than
// SOURCE_DATE_EPOCH are set back to it.
func (i *Image) Archive(ctx context.Context, w io.Writer) (sum string, err error) {
	date, err := epoch()
	if err != nil {
		return "", err
	}
	// Containers get their own devices.
	args := []string{
		"--create", "--format=gnu", "--sort=name", "--numeric-owner", "--mtime=@" + date, "--clamp-mtime", "--exclude=./dev/*", "--directory", i.Rootfs, ".",
	}
	hash := sha256.New()
	tar := host.Helper{Program: "tar", Args: args, Package: "tar", Limit: archiveLimit, Stdout: io.MultiWriter(w, hash)}
	if _, err := tar.Run(ctx); err != nil {
		return "", fmt.Errorf("archive the image %s: %w", i.Name, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// ArchiveFile writes the archive to a file, which appears only when complete.
func (i *Image) ArchiveFile(ctx context.Context, path string) (sum string, err error) {
	part := path + ".part"
	f, err := os.Create(part)
	if err != nil {
		return "", err
	}
	sum, err = i.Archive(ctx, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(part))
	}
	return sum, os.Rename(part, path)
}
