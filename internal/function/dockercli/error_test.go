// SPDX-License-Identifier: Apache-2.0

package dockercli

import "testing"

// TestEnded: a container that does not run has no process to kill, whether or not it still exists.
func TestEnded(t *testing.T) {
	for text, want := range map[string]bool{
		"Error response from daemon: No such container: du":                   true,
		"Error response from daemon: container 1f0 is not running":            true,
		"Cannot connect to the Docker daemon at unix:///run/docker.sock":      false,
		"Error response from daemon: conflict: name \"du\" is already in use": false,
	} {
		if got := Ended(&Error{Stderr: text}); got != want {
			t.Errorf("%q: ended %v", text, got)
		}
	}
}
