// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// judgeShare judges a share of packets. count returns a trial's, or why the trial is
// rejected; decide completes the finding.
func judgeShare(level float64, trials []record.Trial, count func(record.Trial) (stats.Cluster, string),
	decide func(Finding, stats.Proportion, []record.Trial) Finding) Finding {
	var used []record.Trial
	var clusters []stats.Cluster
	var rejected []string
	for _, t := range trials {
		c, why := count(t)
		if why != "" {
			rejected = append(rejected, t.ID+": "+why)
			continue
		}
		used, clusters = append(used, t), append(clusters, c)
	}
	f := newFinding(used, rejected)
	if len(used) < MinTrials {
		return tooFewTrials(f)
	}
	p, err := stats.ClusteredAt(level, clusters)
	if err != nil {
		f.Reason, f.Needs = err.Error(), "more trials"
		return f
	}
	return decide(f, p, used)
}
