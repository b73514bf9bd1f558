// SPDX-License-Identifier: Apache-2.0

package cpulist

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		in   string
		want []int
	}{
		{"", nil}, {"\n", nil}, {"0\n", []int{0}}, {"0-2,5", []int{0, 1, 2, 5}}, {"5,0-1,1", []int{0, 1, 5}}, {"8191", []int{8191}},
	} {
		got, err := Parse(test.in)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%q: %v, %v; want %v", test.in, got, err, test.want)
		}
	}
	for _, bad := range []string{"a", "-1", "1-", "3-1", "8192", "0-99999999999999999999", "1 2", "0--1", "1,-2", "+1", "0x1"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		in   []int
		want string
	}{
		{nil, ""}, {[]int{3}, "3"}, {[]int{5, 0, 2, 1, 1}, "0-2,5"}, {[]int{0, 2, 4}, "0,2,4"},
	} {
		in := slices.Clone(test.in)
		if got := Format(in); got != test.want {
			t.Errorf("%v: %q, want %q", test.in, got, test.want)
		}
		if !slices.Equal(in, test.in) {
			t.Errorf("%v was changed to %v", test.in, in)
		}
	}
}

// FuzzParse: whatever is accepted is ascending, within bounds, and means
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "0-2,5", "0-8191", "3-1", ",,1", "9-9,8", "1-2-3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := Parse(s)
		if err != nil {
			return
		}
		for i, cpu := range cpus {
			if cpu < 0 || cpu > maxCPU || i > 0 && cpu <= cpus[i-1] {
				t.Fatalf("%q gave %v", s, cpus)
			}
		}
		again, err := Parse(Format(cpus))
		if err != nil || !slices.Equal(again, cpus) {
			t.Fatalf("%q gave %v, and then %v, %v", s, cpus, again, err)
		}
	})
}
