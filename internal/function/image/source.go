// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/drayage/dray/internal/host"
)

// Source is what an image's own programs are built from.
type Source struct {
	Variable   string // names a folder or tar file of the sources
	Repository string // has them otherwise, in
	Commit     string // this commit
	File       string // is in these sources, relative to their folder
}

var (
	variableName = regexp.MustCompile(`^DRAY_[A-Z_]+$`)
	commitName   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

func parseSource(value string) (*Source, error) {
	f := strings.Fields(value)
	if len(f) != 4 {
		return nil, fmt.Errorf("%q is not VARIABLE REPOSITORY COMMIT FILE", value)
	}
	s := &Source{f[0], f[1], f[2], f[3]}
	switch {
	case !variableName.MatchString(s.Variable):
		return nil, fmt.Errorf("%q is not the name of a variable DRAY_…", s.Variable)
	case !strings.HasPrefix(s.Repository, "https://"):
		return nil, fmt.Errorf("%q is not the address of a repository, https://…", s.Repository)
	case !commitName.MatchString(s.Commit):
		return nil, fmt.Errorf("%q is not a commit: write 40 hexadecimal digits", s.Commit)
	case !filepath.IsLocal(s.File):
		return nil, fmt.Errorf("%q is not a path below the folder of the sources", s.File)
	}
	return s, nil
}

// Needs says what a build needs to get the sources.
func (s *Source) Needs() string {
	return "needs sources: " + s.Variable + " or internet access"
}

// missing is an error about the sources: why they cannot be had.
func (s *Source) missing(why string) error {
	return &host.Unsupported{
		What: "a build of " + s.Repository, Why: why,
		Fix: fmt.Sprintf("set %s to a folder or tar file with the sources of commit %s", s.Variable, s.Commit),
	}
}

// named is the identity of the sources that the variable names; empty: it is not set.
func (s *Source) named() (string, error) {
	path := os.Getenv(s.Variable)
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", s.missing(fmt.Sprintf("%s: %v", s.Variable, err))
	case info.IsDir():
		if err := s.check(path); err != nil {
			return "", err
		}
		sum, err := treeSum(path)
		return "folder " + sum, err
	case info.Mode().IsRegular():
		sum, err := fileSum(path)
		return "file " + sum, err
	}
	return "", s.missing(fmt.Sprintf("%s=%s is neither a folder nor a file", s.Variable, path))
}

// check looks for the file that is in these sources.
func (s *Source) check(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, s.File)); err == nil {
		return nil
	}
	if path := os.Getenv(s.Variable); path != "" {
		return s.missing(fmt.Sprintf("%s=%s has no file %s", s.Variable, path, s.File))
	}
	return s.missing(fmt.Sprintf("its commit %s has no file %s", s.Commit, s.File))
}

// get writes the sources into dir, which must not exist yet: those of named, or the
// commit if that is empty. It returns their identity.
func (s *Source) get(ctx context.Context, named, dir string, say func(string)) (id string, err error) {
	if err := host.MakeDir(dir, 0o755); err != nil {
		return "", err
	}
	id = named
	path := os.Getenv(s.Variable)
	switch {
	case named == "":
		id = "commit " + s.Commit
		say(fmt.Sprintf("fetching %s of %s, because %s is not set", id, s.Repository, s.Variable))
		err = s.fetch(ctx, dir)
	case strings.HasPrefix(named, "folder "):
		err = copyFolder(ctx, path, dir)
	default:
		if err = unpack(ctx, path, dir); err != nil {
			err = s.missing(fmt.Sprintf("%s=%s is not a tar file, plain, gz or xz: %v", s.Variable, path, err))
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", err
	}
	return id, s.check(dir)
}

// fetch gets the pinned commit. Git checks that the content is the commit's.
func (s *Source) fetch(ctx context.Context, dir string) error {
	for _, argv := range [][]string{
		{"init", "--quiet"},
		{"-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60", "fetch", "--quiet", "--depth=1", s.Repository, s.Commit},
		{"-c", "advice.detachedHead=false", "checkout", "--quiet", s.Commit},
	} {
		if err := runTool(ctx, []string{"GIT_TERMINAL_PROMPT=0"}, append([]string{"git", "-C", dir}, argv...)...); err != nil {
			return s.missing(fmt.Sprintf("%s is not set, and %v", s.Variable, err))
		}
	}
	return os.RemoveAll(filepath.Join(dir, ".git"))
}

// copyFolder copies what is in a folder, without its history.
func copyFolder(ctx context.Context, from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	argv := []string{"cp", "--archive", "--no-preserve=ownership", "--target-directory", to, "--"}
	for _, e := range entries {
		if e.Name() != ".git" {
			argv = append(argv, filepath.Join(from, e.Name()))
		}
	}
	return runTool(ctx, nil, argv...)
}

// unpack unpacks a tar file. If all is in one folder, that folder's content goes into
// dir.
func unpack(ctx context.Context, file, dir string) error {
	if err := runTool(ctx, nil, "tar", "--extract", "--force-local", "--no-same-owner", "--directory", dir, "--file", file); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || !entries[0].IsDir() {
		return err
	}
	aside := dir + ".whole"
	return errors.Join(os.Rename(dir, aside), os.Rename(filepath.Join(aside, entries[0].Name()), dir), os.RemoveAll(aside))
}

// fileSum is the SHA-256 sum of a file.
func fileSum(path string) (string, error) {
	sum := sha256.New()
	err := addFile(sum, path)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// treeSum is a SHA-256 sum of a folder without its history: of names, of which files
// can be executed, and of content.
func treeSum(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if name == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %v %v\n", name, d.Type(), info.Mode()&0o100)
		switch {
		case d.Type().IsRegular():
			fmt.Fprintln(sum, info.Size())
			return addFile(sum, path)
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			fmt.Fprintf(sum, "%q\n", to)
			return err
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

func addFile(to io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
