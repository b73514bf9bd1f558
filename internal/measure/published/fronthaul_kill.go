// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
)

// fronthaulSlot is the length of a slot with 30 kHz between subcarriers (3GPP TS 38.211, section 4.3.2).
const fronthaulSlot = 500 * time.Microsecond

// fronthaulKilled kills an end, which starts again, and counts the slots until the radio unit gets messages again.
func fronthaulKilled(ctx context.Context, live *node.Live, c experiment.Cell, t *record.Trial) error {
	if err := fronthaulSettled(ctx, live); err != nil {
		return err
	}
	end := fronthaulDU
	if c.Event == experiment.EventKillRU {
		end = fronthaulRU
	}
	victim, err := processOf(ctx, live, end)
	if err != nil {
		return err
	}
	if err := kill(victim); err != nil {
		return err
	}
	killed := time.Now()
	if err := fronthaulStarted(ctx, live, end); err != nil {
		return err
	}
	began, err := fronthaulPassed(ctx, live)
	if err != nil {
		return err
	}
	for now := began; now == began; {
		if time.Since(killed) > fronthaulPatience {
			return fmt.Errorf("within %v after the kill of %s the radio unit got nothing", fronthaulPatience, end)
		}
		if err := host.Sleep(ctx, awaitTick/5); err != nil {
			return err
		}
		if now, err = fronthaulPassed(ctx, live); err != nil {
			return err
		}
	}
	took := time.Since(killed)
	t.Raw += fmt.Sprintf("%s was killed; the radio unit got messages again after %v\n", end, took)
	t.Experiment.Values["slots_lost"] = float64(took) / float64(fronthaulSlot)
	return nil
}

// fronthaulPassed is how many messages the radio unit's port has received.
func fronthaulPassed(ctx context.Context, live *node.Live) (uint64, error) {
	flow, err := flowTo(ctx, live, fronthaulRU+"."+fronthaulLink)
	return flow.Received, err
}
