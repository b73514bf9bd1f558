// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"strings"
	"testing"
	"time"
)

func TestParseSpinner(t *testing.T) {
	c, err := parseSpinner(`{"threads":[{"cpu":3,"wall":500000025,"time":125000000,"longest":876328}]}`)
	if err != nil || len(c.CPUs) != 1 || c.CPUs[0].CPU != 3 || *c.CPUs[0].Share > 0.25 || *c.CPUs[0].Share < 0.2499 || c.CPUs[0].Longest != 876328 {
		t.Errorf("%+v, %v", c, err)
	}
	for bad, want := range map[string]string{"": "JSON", `{"threads":[{"cpu":3,"wall":0,"time":1}]}`: "an interval of 0s"} {
		if _, err := parseSpinner(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Output of oslat 2.40 and cyclictest on two CPUs, cut.
const (
	oslatTwo      = "    001 (us):\t 23204227 33204227\n     Minimum:\t 1 1 (us)\n     Average:\t 1.098 1.1 (us)\n     Maximum:\t 7687 4154 (us)\n     Max-Min:\t 7686 4153 (us)\n"
	cyclictestTwo = "# Histogram\n000003 000010\t000020\n# Total: 000010 000020\n# Max Latencies: 00182 00614\n"
)

func TestParseMaxima(t *testing.T) {
	c, err := parseMaxima(oslatMaxima, []byte(oslatTwo), []int{5, 2})
	if err != nil || len(c.CPUs) != 2 || c.CPUs[0].CPU != 2 || c.CPUs[0].Longest != 7687*time.Microsecond || c.CPUs[1].Longest != 4154*time.Microsecond || c.CPUs[0].Share != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = parseMaxima(cyclictestMost, []byte(cyclictestTwo), []int{0, 1}); err != nil || c.CPUs[1].Longest != 614*time.Microsecond {
		t.Errorf("%+v, %v", c, err)
	}
	for want, cpus := range map[string][]int{"2 maxima for 1 CPUs": {1}, "2 maxima for 3 CPUs": {1, 2, 3}} {
		if _, err := parseMaxima(oslatMaxima, []byte(oslatTwo), cpus); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", cpus, err)
		}
	}
	if _, err := parseMaxima(oslatMaxima, nil, []int{1}); err == nil || !strings.Contains(err.Error(), "no maximum") {
		t.Error(err)
	}
}
