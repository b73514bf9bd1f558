// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/drayage/dray/internal/function/guest/inside"
	"github.com/drayage/dray/internal/host"
)

// AgentProgram is the guest's first process; on the host it is the client of a
// guest's channels.
const AgentProgram = "dray-guest"

// agentVariable names the program if it is not next to dray.
const agentVariable = "DRAY_GUEST"

// FindAgent is the path of AgentProgram: next to this program, or in PATH.
func FindAgent() (string, error) {
	if path := os.Getenv(agentVariable); path != "" {
		return filepath.Abs(path)
	}
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(own), AgentProgram)
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	path, err := host.LookProgram(AgentProgram)
	if err != nil {
		return "", &host.Unsupported{What: "guests", Why: "the program " + AgentProgram + " is neither next to " + own + " nor in PATH", Fix: "make build"}
	}
	return path, nil
}

// writeInitramfs writes the initramfs that the guest boots.
func (c Config) writeInitramfs(file string, k Kernel, agent string) error {
	modules, err := k.bootOrder()
	if err != nil {
		return err
	}
	var names []string
	for i, m := range modules {
		names = append(names, fmt.Sprintf("%03d-%s", i, path.Base(m)))
	}
	config, err := json.Marshal(c.insideConfig(k, names))
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(0o644); err != nil { // QEMU may be any user
		return err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	w := newArchive(out)
	if err := addFile(w, "init", 0o755, agent); err != nil {
		return err
	}
	for i, m := range modules {
		if err := addFile(w, inside.ModuleDir+"/"+names[i], 0o644, filepath.Join(k.Modules, m)); err != nil {
			return err
		}
	}
	if err := w.file(inside.ConfigFile, 0o644, int64(len(config)), bytes.NewReader(config)); err != nil {
		return err
	}
	return errors.Join(w.close(), out.Flush(), f.Close())
}

// bootOrder is bootModules with their dependencies.
func (k Kernel) bootOrder() ([]string, error) {
	f, err := os.Open(filepath.Join(k.Modules, "modules.dep"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	index, err := parseModules(f)
	if err != nil {
		return nil, err
	}
	builtin, err := os.ReadFile(filepath.Join(k.Modules, "modules.builtin"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return index.order(bootModules, parseBuiltin(string(builtin)))
}

func addFile(w *archive, name string, perm int, source string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.file(name, perm, info.Size(), f)
}
