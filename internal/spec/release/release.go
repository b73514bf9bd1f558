// SPDX-License-Identifier: Apache-2.0

// Package release identifies the build of a program.
package release

import "strings"

// The build sets these (see the Makefile). The date is the last commit's, so that two
// builds of one commit are equal.
var (
	version = "devel"
	date    = ""
	commit  = ""
)

// Version is the version of this build, such as 0.2.0+1a2b3c4, which records name.
func Version() string {
	if commit == "" {
		return version
	}
	return version + "+" + commit
}

// Date is the date of the last change to this build's source, as YYYY-MM-DD, or "".
func Date() string { return date }

// Text is the output line of `PROGRAM --version`.
func Text(program string) string {
	return strings.TrimSpace(program + " " + Version() + " " + parenthesized(date))
}

func parenthesized(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}
