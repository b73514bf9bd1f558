// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"testing"
)

func TestMACHardwareAddr(t *testing.T) {
	if got := MAC("02:00:00:00:00:01").HardwareAddr().String(); got != "02:00:00:00:00:01" {
		t.Errorf("got %q", got)
	}
	if got := MAC("").HardwareAddr(); got != nil {
		t.Errorf("no address gave %v", got)
	}
}

func TestCPUSets(t *testing.T) {
	for in, want := range map[string]string{"0": "[0]", "0-2,5": "[0 1 2 5]", "5,0-1": "[0 1 5]", "3-3": "[3]"} {
		if got, err := ParseCPUSet(in); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: got %v, %v; want %s", in, got, err, want)
		}
	}
}

func TestCPUSetErrors(t *testing.T) {
	for _, in := range []string{"", ",", "0,", "-1", "1-", "a", "0-1-2", " 1", "1-0", "0,0", "0-8192", "999999"} {
		if got, err := ParseCPUSet(in); err == nil {
			t.Errorf("%q gave %v", in, got)
		}
	}
}
