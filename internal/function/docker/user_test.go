// SPDX-License-Identifier: Apache-2.0

package docker

import "testing"

func TestImageUID(t *testing.T) {
	for user, want := range map[string]int{"": 0, "root": 0, "0": 0, "1000": 1000, "1000:50": 1000, "root:root": 0} {
		if got, err := imageUID(user); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", user, got, err, want)
		}
	}
	for _, user := range []string{"nobody", "-1", "4294967296", "a:0"} {
		if got, err := imageUID(user); err == nil {
			t.Errorf("%q is parsed as %d", user, got)
		}
	}
}

func TestHostUID(t *testing.T) {
	const remapped = "         0     100000      65536\n     70000     300000         10\n"
	for uid, want := range map[int]int{0: 100000, 65535: 165535, 70003: 300003} {
		if got, err := hostUID([]byte(remapped), uid); err != nil || got != want {
			t.Errorf("%d is %d on the host, %v; want %d", uid, got, err, want)
		}
	}
	for _, uid := range []int{65536, 69999, 70010} {
		if got, err := hostUID([]byte(remapped), uid); err == nil {
			t.Errorf("%d is not mapped, but is %d on the host", uid, got)
		}
	}
}
