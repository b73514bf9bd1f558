// SPDX-License-Identifier: Apache-2.0

package runtime

import "testing"

func TestPrivate(t *testing.T) {
	for path, want := range map[string]string{
		"/root/dray/bin/dray-vnf": "/root", "/home/a/bin/dray-vnf": "/home", "/usr/local/bin/dray-vnf": "", "/rootless/dray-vnf": "",
	} {
		if got := Private(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
