// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SleepMark describes the process's threads whose names begin with one of names, while
// all of them sleep. If two marks are equal, none of the threads ran in between. It is
// "" if there is no such thread, or one of them can run or is stopped (proc(5)).
func (p ProcessID) SleepMark(names []string) string {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.PID))
	if err != nil || !p.Alive() {
		return ""
	}
	var mark strings.Builder
	for _, file := range files {
		status, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		fields := statusFields(string(status))
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(fields["Name"], name) }) {
			continue
		}
		if state := fields["State"]; state == "" || !strings.Contains("SD", state[:1]) {
			return ""
		}
		fmt.Fprintln(&mark, fields["Pid"], fields["voluntary_ctxt_switches"], fields["nonvoluntary_ctxt_switches"])
	}
	return mark.String()
}

// statusFields reads the lines "key: value" of a status file.
func statusFields(text string) map[string]string {
	fields := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if key, value, ok := strings.Cut(line, ":"); ok {
			fields[key] = strings.TrimSpace(value)
		}
	}
	return fields
}
