// SPDX-License-Identifier: Apache-2.0

// Package verdict judges, from records alone, whether each link met its requirements.
package verdict

// Word is the outcome of one requirement.
type Word string

const (
	Met           Word = "met"            // the one-sided bound is on the good side, with 95 % confidence
	Missed        Word = "missed"         // the one-sided bound is on the bad side, with 95 % confidence
	NotMeasurable Word = "not measurable" // neither; Needs says what is missing
)

// Verdict is the judgement of one requirement of one link, path or function; the worst direction, or CPU, decides.
type Verdict struct {
	Link        string   `json:"link"`
	Path        bool     `json:"path,omitempty"`     // Link is the name of a path
	Function    bool     `json:"function,omitempty"` // Link is the name of a function
	Requirement string   `json:"requirement"`        // field name in the chain file
	Required    Figure   `json:"required"`           // "≤ 1.5ms at p99"
	Measured    Figure   `json:"measured"`           // the point estimate
	Bound       Figure   `json:"bound"`              // the one-sided bound that decided
	Basis       string   `json:"basis"`              // the traffic of the figures: "udp, 1,472-byte payload, 1,518-byte frames, one way"
	Direction   string   `json:"direction"`          // "cu-up.f1u → du.f1u"; the one that decided
	Verdict     Word     `json:"verdict"`
	Reason      string   `json:"reason"`          // one sentence: why this word
	Needs       string   `json:"needs,omitempty"` // for NotMeasurable: the time, packets or cores needed
	Method      string   `json:"method"`          // "full round trip, conservative", "Clopper–Pearson", …
	Trials      []string `json:"trials"`          // ids of the underlying records
	Marks       []string `json:"marks"`           // union of the marks of those records
	// Directions holds every direction's own finding; the worst of them is above.
	Directions []Finding `json:"directions"`
}

// Finding is the judgement of one requirement over one direction of a link.
type Finding struct {
	Direction string   `json:"direction"` // "cu-up.f1u → du.f1u"
	Verdict   Word     `json:"verdict"`
	Required  Figure   `json:"required"` // the same in every direction
	Measured  Figure   `json:"measured"`
	Bound     Figure   `json:"bound"`
	Basis     string   `json:"basis"`
	Reason    string   `json:"reason"`
	Needs     string   `json:"needs,omitempty"`
	Trials    []string `json:"trials"`             // ids of the underlying records
	Rejected  []string `json:"rejected,omitempty"` // "id: why this record is not evidence"

	marks   []string
	badness float64 // orders findings with the same word: larger is worse
	// more estimates the factor of trials that would decide; 0: no number would.
	more float64
}
