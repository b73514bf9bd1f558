// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
)

// maxMeta limits the text of a package's TOSCA.meta, in bytes.
const maxMeta = 64 << 10

// maxEntries limits the files of a package.
const maxEntries = 20_000

// Source is what a descriptor and its imports are read from: a folder, or a package
// (CSAR), packed or not. No path leaves it.
type Source struct {
	fsys  fs.FS
	given string // what the user has named
	name  string // of the folder or package, before the paths in it; "": none
	entry string // the path of the descriptor
	text  []byte // the descriptor itself, if it is no file
	close func() error
}

// Open finds the descriptor of a file: a service template, a packed CSAR, or the folder
// of an unpacked one.
func Open(name string) (*Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("descriptor %s: %w; name a file, a CSAR package or a folder", name, cause(err))
	}
	switch {
	case info.IsDir():
		s := &Source{given: name, fsys: folder(name), name: name}
		return s, s.findEntry()
	case !info.Mode().IsRegular(): // a pipe is read once
		data, err := parse.ReadFile(name)
		if err != nil {
			return nil, err
		}
		return Text(name, data)
	}
	packed, err := isZip(name)
	if err != nil {
		return nil, err
	}
	if !packed {
		return &Source{given: name, fsys: folder(filepath.Dir(name)), name: filepath.Dir(name), entry: filepath.Base(name)}, nil
	}
	r, err := zip.OpenReader(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := &Source{given: name, fsys: r, name: name, close: r.Close}
	if err := s.openPackage(&r.Reader); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return s, nil
}

// Text is a source for text without a file, such as standard input.
func Text(name string, data []byte) (*Source, error) {
	if !bytes.HasPrefix(data, zipMagic) {
		return &Source{given: name, entry: name, text: data}, nil
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := &Source{given: name, fsys: r, name: name}
	return s, s.openPackage(r)
}

// Close releases the package.
func (s *Source) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

func (s *Source) openPackage(r *zip.Reader) error {
	if len(r.File) > maxEntries {
		return fmt.Errorf("%s holds %d files, more than %d: it is no CSAR of a descriptor", s.name, len(r.File), maxEntries)
	}
	return s.findEntry()
}

// zipMagic begins every ZIP archive with files.
var zipMagic = []byte("PK\x03\x04")

func isZip(name string) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, fmt.Errorf("descriptor: %w", err)
	}
	defer f.Close()
	head := make([]byte, len(zipMagic))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return bytes.Equal(head[:n], zipMagic), nil
}

// findEntry reads which service template a package begins with (ETSI GS NFV-SOL 004): the
// one that TOSCA.meta names, else the only one at the top.
func (s *Source) findEntry() error {
	data, err := s.read("TOSCA-Metadata/TOSCA.meta", maxMeta)
	if err == nil {
		for _, line := range strings.Split(string(data), "\n") {
			key, value, _ := strings.Cut(line, ":")
			if strings.EqualFold(strings.TrimSpace(key), "Entry-Definitions") {
				s.entry = path.Clean(strings.TrimSpace(value))
				return s.checkEntry("its TOSCA-Metadata/TOSCA.meta")
			}
		}
		return fmt.Errorf("%s: TOSCA-Metadata/TOSCA.meta names no Entry-Definitions", s.name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	top, err := fs.ReadDir(s.fsys, ".")
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for _, f := range top {
		if ext := path.Ext(f.Name()); f.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		if s.entry != "" {
			return fmt.Errorf("%s has no TOSCA-Metadata/TOSCA.meta, and several YAML files at its top; name one of them", s.name)
		}
		s.entry = f.Name()
	}
	if s.entry == "" {
		return fmt.Errorf("%s has no TOSCA-Metadata/TOSCA.meta, and no YAML file at its top: it is no CSAR", s.name)
	}
	return nil
}

func (s *Source) checkEntry(by string) error {
	if !fs.ValidPath(s.entry) || s.entry == "." {
		return fmt.Errorf("%s: %s names the descriptor %s, which is outside of the package", s.name, by, parse.Quote(s.entry))
	}
	return nil
}

// label is a path in the source as users know it.
func (s *Source) label(name string) string {
	if s.name == "" {
		return name
	}
	return filepath.Join(s.name, name)
}

// read returns a regular file of the source, of at most that many bytes.
func (s *Source) read(name string, limit int64) ([]byte, error) {
	switch {
	case s.text != nil && name == s.entry:
		return s.text, nil
	case s.fsys == nil:
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	f, err := s.fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.label(name), cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.label(name), cause(err))
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", s.label(name))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.label(name), cause(err))
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than the limit of %d bytes", s.label(name), limit)
	}
	return data, nil
}

// cause is an error of a file without the file's name, which a message has already.
func cause(err error) error {
	var inside *fs.PathError
	if errors.As(err, &inside) {
		return inside.Err
	}
	return err
}

// folder is a directory whose files cannot be outside of it, even by symbolic links.
type folder string

// Open opens a file or directory below the folder. It refuses devices and pipes, which
// could block.
func (f folder) Open(name string) (fs.File, error) {
	fault := func(err error) (fs.File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return fault(fs.ErrInvalid)
	}
	root, err := filepath.EvalSymlinks(string(f))
	if err != nil {
		return fault(cause(err))
	}
	real, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return fault(cause(err))
	}
	if inside, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(inside) {
		return fault(errors.New("a symbolic link leads out of the folder"))
	}
	info, err := os.Stat(real)
	if err != nil {
		return fault(cause(err))
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return fault(errors.New("it is no regular file"))
	}
	return os.Open(real)
}
