// SPDX-License-Identifier: Apache-2.0

// Package release identifies the build that a program belongs to.
package release

import "strings"

// The build sets these (see the Makefile). The date is that of the last commit, so
// that two builds of one commit are the same.
var (
	version = "devel"
	date    = ""
	commit  = ""
)

// Version is the version of this build, such as 0.2.0+1a2b3c4: records name it.
func Version() string {
	if commit == "" {
		return version
	}
	return version + "+" + commit
}

// Date is when the source of this build was last changed, as YYYY-MM-DD, or "".
func Date() string { return date }

// Text is the line that `PROGRAM --version` prints.
func Text(program string) string {
	return strings.TrimSpace(program + " " + Version() + " " + parenthesized(date))
}

func parenthesized(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}
