// SPDX-License-Identifier: Apache-2.0

package published

import (
	"encoding/json"
	"strings"
)

// poolLog is more lines than a worker prints in a trial.
const poolLog = 1 << 16

// reported are the sessions of all processes of a worker, by its log. A killed process has
// reported all but its last interval.
func reported(log string) (all sessions) {
	var last sessions
	for _, text := range strings.Split(log, "\n") {
		var line struct {
			Event    string
			Sessions *struct{ Live, Resumed int }
		}
		switch {
		case json.Unmarshal([]byte(text), &line) != nil: // EAL's, or cut short
		case line.Event == "ready":
			all.had, all.begun, last = all.had+last.had, all.begun+last.begun, sessions{}
		case line.Sessions != nil:
			last = sessions{line.Sessions.Live, line.Sessions.Live - line.Sessions.Resumed}
		}
	}
	return sessions{all.had + last.had, all.begun + last.begun}
}

// workersUp is how many workers a load balancer's report has up.
func workersUp(report string) (n int) {
	var line struct{ Workers []struct{ Up bool } }
	if json.Unmarshal([]byte(report), &line) != nil {
		return 0
	}
	for _, w := range line.Workers {
		if w.Up {
			n++
		}
	}
	return n
}

// answered is the generator's result.
type answered struct {
	Lost uint64
	Rate float64 `json:"send_pps"`
}

// answers reads the generator's result; false: it goes on.
func answers(log string) (got answered, ended bool) {
	for _, text := range strings.Split(log, "\n") {
		var line struct {
			Event string
			answered
		}
		if json.Unmarshal([]byte(text), &line) == nil && line.Event == "result" {
			return line.answered, true
		}
	}
	return got, false
}
