// SPDX-License-Identifier: Apache-2.0

package runc

import "testing"

func TestCutMask(t *testing.T) {
	for _, test := range []struct {
		mask    string
		granted []int
		want    string
	}{
		{"3\n", []int{1}, "2\n"},
		{"ff\n", []int{0, 7}, "81\n"},
		{"ffffffff,ffffffff\n", []int{31, 32, 63}, "80000001,80000000\n"},
		{"0\n", []int{0}, "0\n"},
		{"f\n", nil, "0\n"},
		{"not a mask\n", []int{0}, "0\n"},
	} {
		if got := string(cutMask([]byte(test.mask), test.granted)); got != test.want {
			t.Errorf("cutMask(%q, %v) = %q, want %q", test.mask, test.granted, got, test.want)
		}
	}
}

func TestCutList(t *testing.T) {
	for _, test := range []struct {
		list    string
		granted []int
		want    string
	}{
		{"0-3,8\n", []int{2, 3, 8}, "2-3,8\n"},
		{"0-1\n", []int{5}, "\n"},
		{"\n", []int{0}, "\n"},
		{"(null)\n", []int{0}, "\n"},
	} {
		if got := string(cutList([]byte(test.list), test.granted)); got != test.want {
			t.Errorf("cutList(%q, %v) = %q, want %q", test.list, test.granted, got, test.want)
		}
	}
}

func TestFilterCPUInfo(t *testing.T) {
	const arm = "processor\t: 0\nBogoMIPS\t: 50\n\nprocessor\t: 1\nBogoMIPS\t: 50\n\nHardware\t: Virt\n\n"
	const want = "processor\t: 1\nBogoMIPS\t: 50\n\nHardware\t: Virt\n\n"
	if got := string(filterCPUInfo([]byte(arm), []int{1})); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
