// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/matrix"
)

// BenchSchema is the version of bench.json.
const BenchSchema = 1

// The files of a bench's directory that a run directory does not have.
const (
	BenchFile  = "bench.json"
	MatrixFile = "matrix.yaml"
)

// BenchRun is bench.json: the planned measurement, and the parts that cannot run.
type BenchRun struct {
	Schema   int           `json:"schema"`
	ID       string        `json:"id"`
	Matrix   matrix.Matrix `json:"matrix"`
	Hash     string        `json:"hash"` // of the matrix file's text
	Started  time.Time     `json:"started"`
	Finished time.Time     `json:"finished"` // zero: interrupted, or still running
	Took     time.Duration `json:"took"`     // over all sessions, ns
	Rounds   int           `json:"rounds"`   // finished
	Seed     uint64        `json:"seed"`
	Program
	Baseline string         `json:"baseline"`
	Host     inventory.Host `json:"host"`
	// NoLimit says why the momentary physical limit could not be measured.
	NoLimit string     `json:"no_limit,omitempty"`
	Rows    []BenchRow `json:"rows"`
}

// BenchRow is one configuration.
type BenchRow struct {
	Config record.Config `json:"config"`
	// Skipped says why it cannot be run here; empty: it is run.
	Skipped string `json:"skipped,omitempty"`
	Fix     string `json:"fix,omitempty"`
	// Untried says that its transport has never run on this host, including this run.
	Untried    bool   `json:"untried,omitempty"`
	Privileges string `json:"privileges,omitempty"` // what its functions need
	Isolation  string `json:"isolation,omitempty"`
	Copies     int    `json:"copies"` // of a packet's payload, from sender to receiver
}
