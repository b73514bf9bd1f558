// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/drayage/dray/internal/result/verdict"
)

// outputSchema is the version of what JSON writes. Since 2, the figures of
// verdicts are numbers with units.
const outputSchema = 2

// output is what JSON writes.
type output struct {
	Schema       int               `json:"schema"`
	Run          Run               `json:"run"`
	Verdicts     []verdict.Verdict `json:"verdicts"`
	ExitCode     int               `json:"exit_code"`
	Measurements []Measurement     `json:"measurements"`
}

// JSON writes the report for programs: verdicts, and what was measured.
func (d *Data) JSON(w io.Writer) error {
	out := output{Schema: outputSchema, Run: d.Run, Verdicts: d.Verdicts, ExitCode: d.ExitCode(), Measurements: d.Measurements()}
	if out.Verdicts == nil {
		out.Verdicts = []verdict.Verdict{}
	}
	if out.Measurements == nil {
		out.Measurements = []Measurement{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("write report as JSON: %w", err)
	}
	return nil
}
