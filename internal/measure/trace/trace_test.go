// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

// Nothing is sent before every tap has opened, or failed.
func TestTapsOpenFirst(t *testing.T) {
	tracer := &Tracer{Live: &node.Live{}, points: []point{{end: plan.End{Function: "a", Port: "x"}}}}
	all := tracer.openTaps(context.Background())
	if err := all.opened(context.Background()); err != nil || all.errs[0] == nil {
		t.Errorf("packets may be sent before the tap has opened: %v", err)
	}
	if _, err := all.end(context.Background()); err == nil || !strings.Contains(err.Error(), "function a has no sandbox") {
		t.Errorf("%v", err)
	}
}

// sized is what a tracer of a path with a load of 5 Mb/s sends.
func sized(load string, trial time.Duration) (*Tracer, error) {
	tracer := &Tracer{Path: &plan.Path{Name: "p", Load: 5_000_000}, Options: Options{Duration: trial}}
	tracer.way.From.MTU, tracer.way.To.MTU = 1500, 1500
	if load != "" {
		v, err := units.ParseBitrate(load)
		if err != nil {
			return nil, err
		}
		tracer.Options.Load = &v
	}
	return tracer, tracer.size()
}

func TestLoad(t *testing.T) {
	for load, want := range map[string]struct {
		rate    uint64
		payload int
	}{"": {5_000_000, 1472}, "3Mbps": {3_000_000, 1472}, "0bps": {idleRate * 8 * 76, 76}} {
		tracer, err := sized(load, time.Second)
		testenv.Must(t, err)
		if tracer.params.Bitrate != want.rate || tracer.payload() != want.payload {
			t.Errorf("load %q: %d bps in packets of %d B", load, tracer.params.Bitrate, tracer.payload())
		}
	}
}

// A load of less than a few packets per trial is refused, and the load that the error names is not.
func TestTooLittleLoad(t *testing.T) {
	for _, trial := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second, time.Minute} {
		_, err := sized("1bps", trial)
		few := (*LoadError)(nil)
		if !errors.As(err, &few) {
			t.Fatalf("1bps in %v: %v", trial, err)
		}
		if _, err := sized(few.Least.String(), trial); err != nil {
			t.Errorf("%v as the error advises: %v", few.Least, err)
		}
	}
	_, err := sized("1bps", 300*time.Millisecond)
	if want := "a load of 1bps sends under 2 packets of 1472 B in a trial of 300ms: give --load 79kbps or more"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}
