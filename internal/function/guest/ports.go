// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Port is a native port of the guest's function.
type Port struct {
	Name string `json:"name"`
	// Socket is the broker's socket on the host.
	Socket string `json:"socket"`
	// Windows are the port's own windows: one for the memory in use, and one for that
	// which a program has not left yet.
	Windows []int `json:"windows"`
}

// PortWindows is how many windows a port has.
const PortWindows = 2

const filePorts = "ports.json"

// WritePorts lists a guest's native ports in its directory.
func WritePorts(dir string, ports []Port) error {
	text, err := json.Marshal(ports)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filePorts), text, 0o600)
}

// ReadPorts reads that list; a guest without one has no native ports.
func ReadPorts(dir string) ([]Port, error) {
	text, err := os.ReadFile(filepath.Join(dir, filePorts))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ports []Port
	return ports, json.Unmarshal(text, &ports)
}
