// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/matrix"
)

// note stores the PDR of this configuration and round, if the trial found it.
func (s *setup) note(t record.Trial) {
	if t.ID == s.visit.id(matrix.Load{Search: matrix.LoadPDR}) && t.Error == "" && t.Bench != nil && t.Bench.Search != nil {
		s.pdr = t.Bench.Search.Throughput
	}
}

// shareOf converts a share of PDR to packets/s.
func (s *setup) shareOf(load matrix.Load) (uint64, error) {
	if s.pdr == 0 {
		return 0, errors.New("this round has no PDR to offer a share of: see the trial that searched for it")
	}
	return rateAt(s.pdr, load.Percent, time.Duration(s.runner.Run.Matrix.Trial))
}

// underLoad measures at a share of this round's PDR.
func (s *setup) underLoad(ctx context.Context, load matrix.Load) (record.Trial, error) {
	rate, err := s.shareOf(load)
	if err != nil {
		return record.Trial{}, err
	}
	t, err := s.offer(ctx, rate, time.Duration(s.runner.Run.Matrix.Trial))
	if t.Bench != nil {
		t.Bench.PDR = s.pdr
	}
	return t, err
}
