// SPDX-License-Identifier: Apache-2.0

// Package report makes tables, JSON and one HTML page from a run directory. It uses
// records alone, so any machine can make them again.
package report

import (
	"fmt"
	"time"
)

// Schema is the version of run.json.
const Schema = 1

// The files of a run directory.
const (
	RunFile       = "run.json"
	PlanFile      = "plan.json"
	InventoryFile = "inventory.json"
	RecordsFile   = "records.jsonl"
	ChainFile     = "chain.yaml"
	PageFile      = "report.html"
)

// Run is run.json: what was brought up, the duration of each phase, and the outcome.
type Run struct {
	Schema   int       `json:"schema"`
	ID       string    `json:"id"`
	Chain    string    `json:"chain"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`        // zero: interrupted, or still running
	Dray     string    `json:"dray"`            // version of this program
	Build    string    `json:"build,omitempty"` // see Program
	Seed     uint64    `json:"seed"`            // of the random order of trials
	// How long to measure: a profile, or the length and rounds of trials that the user
	// chose.
	Profile   string        `json:"profile,omitempty"`
	Trial     time.Duration `json:"trial,omitempty"` // ns
	Rounds    int           `json:"rounds,omitempty"`
	Phases    []Phase       `json:"phases"`
	Functions []Function    `json:"functions"`
	Links     []Link        `json:"links"`
	ExitCode  int           `json:"exit_code"`
	// Interrupted says that a signal ended the run.
	Interrupted bool `json:"interrupted,omitempty"`
	// Cluster is where the chain is, if that is not one host.
	Cluster *RunCluster `json:"cluster,omitempty"`
}

// UpPhase is the phase that brings the run's chain up.
const UpPhase = "up"

// Resumable reports whether the run is unfinished and brings up its own chain.
func (r *Run) Resumable() bool {
	return r.Finished.IsZero() && len(r.Phases) > 0 && r.Phases[0].Name == UpPhase
}

// Command begins such a run.
func (r *Run) Command() string {
	if r.Cluster != nil {
		command := fmt.Sprintf("kubectl dray verify %s -n %s --active", r.Chain, r.Cluster.Namespace)
		if len(r.Cluster.Copied) > 0 {
			command += " --paths"
		}
		return command
	}
	return "dray run"
}

// interruption states that the run is unfinished; "": it is not.
func (d *Data) interruption() string {
	if !d.Run.Finished.IsZero() {
		return ""
	}
	text := "Not finished"
	if d.Run.Interrupted {
		text = "Interrupted"
	}
	text += fmt.Sprintf(": this report uses the %s measured so far.", countOf(len(d.Trials), "record"))
	if d.Run.Resumable() {
		text += fmt.Sprintf(" `dray run --resume %s` continues the run.", d.Dir)
	}
	return text
}

// Phase is a part of the run; phases are in order of execution.
type Phase struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration"` // ns
}

// Function is a function's outcome.
type Function struct {
	Name    string `json:"name"`
	Runtime string `json:"runtime"`
	CPUs    []int  `json:"cpus"`    // nil: any
	Outcome string `json:"outcome"` // "exited 0", "still running"…
}

// Link is a link's configuration.
type Link struct {
	Name      string            `json:"name"`
	Transport string            `json:"transport"`
	Reason    string            `json:"reason"`
	Ends      []string          `json:"ends"`      // "function.port" or "uplink:interface"
	Addresses map[string]string `json:"addresses"` // by end: IP with prefix, or MAC
	Offloads  []string          `json:"offloads"`  // what the driver changed, in words
	Qdiscs    map[string]string `json:"qdiscs"`    // by end, as read back
	Engine    string            `json:"engine"`    // program and version behind it; empty: the kernel
}
