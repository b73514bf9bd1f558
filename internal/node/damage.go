// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drayage/dray/internal/host"
)

// dirDamaged holds damaged files of chains that are removed. No chain has the name.
const dirDamaged = ".damaged"

// setAside moves the damaged files of a chain out of its directory, and returns where they
// are now.
func (n *Node) setAside(name string) ([]string, error) {
	var moved []string
	for _, file := range n.damaged(name) {
		to, err := n.moveAside(filepath.Join(n.dir(name), file), name+"-"+file)
		if err != nil {
			return moved, err
		}
		moved = append(moved, to)
	}
	return moved, nil
}

// moveAside moves what is at a path of the state directory to a name that says when.
func (n *Node) moveAside(path, name string) (to string, err error) {
	dir := filepath.Join(n.StateDir, dirDamaged)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	to = filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000000")+"-"+name)
	return to, os.Rename(path, to)
}

// damaged are the files of a chain's state that cannot be read.
func (n *Node) damaged(name string) []string {
	dir := n.dir(name)
	checks := map[string]func(path string) error{
		fileLock:      onlyRegular,
		fileJournal:   func(string) error { return n.checkJournal(name) },
		fileChain:     func(string) error { _, err := n.readChain(name); return err },
		fileState:     func(string) error { _, err := n.readState(name); return err },
		fileStatus:    func(path string) error { return readJSON(path, &Status{}) },
		fileProcesses: func(path string) error { return readJSON(path, &map[string]Revival{}) },
		fileBroker:    func(path string) error { return readJSON(path, &Broker{}) },
	}
	var bad []string
	for _, file := range []string{fileLock, fileJournal, fileChain, fileState, fileStatus, fileProcesses, fileBroker} {
		if err := checks[file](filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, file)
		}
	}
	return bad
}

func onlyRegular(path string) error {
	f, err := host.OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	return f.Close()
}

func (n *Node) checkJournal(name string) error {
	read, err := n.readJournal(name)
	if _, left := n.sortOut(name, read.Resources); err == nil && len(left) > 0 {
		return errors.New("it names what is not the chain's")
	}
	return errors.Join(err, read.Damage)
}
