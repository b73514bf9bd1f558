// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"time"
)

// Settle is how long a command must run to count as started.
const Settle = 500 * time.Millisecond

// WithLogs adds the last output of every failed function.
func (l *Live) WithLogs(err error) error {
	functions, _, statusErr := l.Status()
	if statusErr != nil {
		return err
	}
	for _, st := range functions {
		if st.Phase == PhaseFailed || st.Phase == PhaseRestarting {
			if out := l.LogTail(st.Name, 5); out != "" && st.Error == "" {
				err = fmt.Errorf("%w; its last output:\n%s", err, out)
			}
		}
	}
	return err
}
