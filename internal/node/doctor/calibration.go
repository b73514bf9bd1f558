// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/spec/inventory"
)

// calibrationVersion is the format of the file.
const calibrationVersion = 2

// maxCalibration bounds the file in bytes; a real one has a few thousand.
const maxCalibration = 4 << 20

type calibrationFile struct {
	Version     int                     `json:"version"`
	Calibration []inventory.Calibration `json:"calibration"`
}

// libraryDir survives a reboot, unlike node.DefaultStateDir.
const libraryDir = "/var/lib/dray"

// CalibrationFile is the calibration file of a state directory. For the default
// directory it is elsewhere and survives a reboot; any other holds its own.
func CalibrationFile(stateDir string) string {
	if stateDir == node.DefaultStateDir {
		stateDir = libraryDir
	}
	return filepath.Join(stateDir, "calibration.json")
}

// markStale marks measurements from another kernel or CPU: the disk may have moved
// to another machine, or the kernel may have been replaced.
func markStale(all []inventory.Calibration, h inventory.Host) {
	for i := range all {
		switch c := &all[i]; {
		case c.CPUModel != h.CPUModel:
			c.Stale = fmt.Sprintf("it was measured on another machine (%s)", c.CPUModel)
		case c.Kernel != h.Kernel:
			c.Stale = fmt.Sprintf("it was measured under another kernel (%s)", c.Kernel)
		}
	}
}

// RecallCalibration adds the measurements in a file to the inventory of this host. A file
// that is missing, or that an ordinary user cannot read, is skipped.
func RecallCalibration(inv *inventory.Inventory, path string) {
	calibration, err := LoadCalibration(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return
	}
	if err != nil { // plans then go by stated defaults
		inv.CalibrationFault = err.Error()
		return
	}
	markStale(calibration, inv.Host)
	inv.Calibration = calibration
}

// LoadCalibration reads the measurements of this host's transports. A missing file
// is fs.ErrNotExist. A malformed file is rejected as a whole, since partial
// evidence misleads.
func LoadCalibration(path string) ([]inventory.Calibration, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe would block
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCalibration+1))
	if err != nil {
		return nil, err
	}
	calibration, err := parseCalibration(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; `dray calibrate` measures again and replaces it", path, err)
	}
	return calibration, nil
}

func parseCalibration(b []byte) ([]inventory.Calibration, error) {
	if len(b) > maxCalibration {
		return nil, fmt.Errorf("longer than %d bytes", maxCalibration)
	}
	var file calibrationFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("not a calibration: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not a calibration: more data follows the JSON object")
	}
	if file.Version != calibrationVersion {
		return nil, fmt.Errorf("format version %d, this program reads %d", file.Version, calibrationVersion)
	}
	return file.Calibration, checkCalibration(file.Calibration)
}

// SaveCalibration replaces the file atomically, even across a power cut.
func SaveCalibration(path string, calibration []inventory.Calibration) error {
	if err := checkCalibration(calibration); err != nil {
		return fmt.Errorf("save calibration: %w", err)
	}
	b, err := json.MarshalIndent(calibrationFile{calibrationVersion, calibration}, "", "  ")
	if err != nil {
		return fmt.Errorf("save calibration: %w", err)
	}
	if err := host.ReplaceFileSynced(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("save calibration: %w", err)
	}
	return nil
}

func checkCalibration(all []inventory.Calibration) error {
	seen := map[string]bool{}
	for i, c := range all {
		if c.Transport == "" {
			return fmt.Errorf("entry %d names no transport", i+1)
		}
		if seen[c.Transport] {
			return fmt.Errorf("transport %s appears twice", c.Transport)
		}
		seen[c.Transport] = true
		if err := checkEntry(c); err != nil {
			return fmt.Errorf("transport %s: %w", c.Transport, err)
		}
	}
	return nil
}

func checkEntry(c inventory.Calibration) error {
	switch {
	case c.Source == "":
		return errors.New("no source: a figure without its record is not evidence")
	case c.Measured.IsZero():
		return errors.New("no time of measurement")
	case c.Kernel == "" || c.CPUModel == "":
		return errors.New("no kernel or no CPU: the machine it was measured on is unknown")
	case !(c.LossRatio >= 0 && c.LossRatio <= 1):
		return fmt.Errorf("loss_ratio %v is not between 0 and 1", c.LossRatio)
	case c.PDVp99 < 0:
		return fmt.Errorf("pdv_p99 %s is negative", c.PDVp99)
	}
	var last inventory.LatencyPoint
	for _, p := range c.Latency {
		if !(p.Percentile > 0 && p.Percentile <= 100) || p.Latency < 0 {
			return fmt.Errorf("impossible latency %s at percentile %v", p.Latency, p.Percentile)
		}
		if p.Percentile <= last.Percentile || p.Latency < last.Latency {
			return fmt.Errorf("latency falls from percentile %v to %v", last.Percentile, p.Percentile)
		}
		last = p
	}
	return nil
}
