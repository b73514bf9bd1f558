// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/inventory"
)

// maxPublished bounds the calibration in a node's ConfigMap, in bytes; a real one has a few hundred for
// each transport. An object of the API has at most about a megabyte.
const maxPublished = 64 << 10

// version changes if a file does: `dray calibrate` replaces it.
type version struct {
	written time.Time
	size    int64
}

// versionOf is the version of a file; of a missing one, or one that cannot be read, the zero.
func versionOf(path string) version {
	info, err := os.Stat(path)
	if err != nil {
		return version{}
	}
	return version{info.ModTime(), info.Size()}
}

// recallCalibration adds what `dray calibrate` has measured on this node to its inventory, as
// on one host. Transports that the inventory does not know are left out.
func recallCalibration(inv *inventory.Inventory, path string) {
	doctor.RecallCalibration(inv, path)
	inv.Calibration = slices.DeleteFunc(inv.Calibration, func(c inventory.Calibration) bool { return inv.Transport(c.Transport) == nil })
	if text, err := json.Marshal(inv.Calibration); err != nil || len(text) > maxPublished {
		inv.Calibration, inv.CalibrationFault = nil, fmt.Sprintf("%s: more than %d bytes cannot be published; `dray calibrate` measures again", path, maxPublished)
	}
}

// logCalibration says what of a calibration is used, and what is not and why.
func logCalibration(log *slog.Logger, inv *inventory.Inventory) {
	if inv.CalibrationFault != "" {
		log.Warn("the calibration of this node is not used", "error", inv.CalibrationFault)
	}
	var used []string
	for _, c := range inv.Calibration {
		if c.Stale != "" {
			log.Warn("the calibration of a transport is not used", "transport", c.Transport, "error", c.Stale)
			continue
		}
		used = append(used, c.Transport)
	}
	log.Info("published", "calibrated", strings.Join(used, " "))
}
