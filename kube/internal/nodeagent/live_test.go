// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/result/verdict"
)

// served is the sample that an agent serves which took the latest one so long ago.
func served(t *testing.T, latest *live.Sample, age time.Duration) live.Sample {
	t.Helper()
	now := time.Unix(1e9, 0)
	a := &Agent{now: func() time.Time { return now }}
	a.live = watch(a)
	if latest != nil {
		latest.Time = now.Add(-age)
		a.live.latest.Store(latest)
	}
	w := httptest.NewRecorder()
	a.ServeLinks(w, nil)
	var got live.Sample
	if err := json.NewDecoder(w.Body).Decode(&got); err != nil || got.Links == nil {
		t.Fatalf("%v: %+v", err, got)
	}
	return got
}

func TestServedLinksAreBrief(t *testing.T) {
	latency := broker.Latency{Count: 3, Buckets: []broker.Bucket{{Low: 1, High: 2, Count: 3}}}
	flows := []telemetry.Flow{{From: "a.p", To: "b.p", Received: 7, Latency: latency}}
	full := live.Link{
		Chain: "ran/f1", Now: flows, Window: flows, Total: flows,
		Status:   broker.LinkStatus{Name: "l", State: broker.StateActive, Ends: []broker.EndStatus{{PID: 4711, Latency: latency}}},
		Verdicts: []verdict.Verdict{{Requirement: "latency", Trials: []string{"1"}, Directions: []verdict.Finding{{Trials: []string{"1"}}}}},
	}
	latest := &live.Sample{Links: []live.Link{full}}
	got := served(t, latest, time.Second).Links[0]
	if got.Status.Ends != nil || got.Status.Late || len(got.Verdicts[0].Trials)+len(got.Verdicts[0].Directions[0].Trials) > 0 {
		t.Errorf("%+v", got)
	}
	if len(got.Now[0].Latency.Buckets) != 1 || got.Window[0].Latency.Buckets != nil || got.Total[0].Latency.Buckets != nil || got.Total[0].Latency.Count != 3 {
		t.Errorf("%+v", got)
	}
	if kept := latest.Links[0]; len(kept.Total[0].Latency.Buckets) != 1 || len(kept.Verdicts[0].Trials) != 1 || len(kept.Verdicts[0].Directions[0].Trials) != 1 {
		t.Errorf("the agent's own sample is now %+v", kept)
	}
	classes := &broker.ClassesStatus{Reported: true, Classes: []broker.ClassStatus{{Name: "control"}}}
	full.Status.Ends = []broker.EndStatus{{Function: "a", Port: "p", PID: 4711, Classes: classes}, {Function: "b", Port: "p"}}
	if got := served(t, &live.Sample{Links: []live.Link{full}}, time.Second).Links[0].Status.Ends; len(got) != 1 || got[0].Function != "a" || got[0].PID != 0 || got[0].Classes.Classes[0].Name != "control" {
		t.Errorf("ends %+v", got)
	}
	full.Now = nil
	if got := served(t, &live.Sample{Links: []live.Link{full}}, time.Second).Links[0]; len(got.Total[0].Latency.Buckets) != 1 {
		t.Error("without an interval, the total has no quantiles")
	}
}

func TestServedLinksSayThatTheyAreOld(t *testing.T) {
	if got := served(t, nil, 0); len(got.Links) != 0 {
		t.Errorf("%+v", got)
	}
	sample := &live.Sample{Links: []live.Link{{Chain: "ran/f1"}}}
	if got := served(t, sample, time.Minute).Links[0]; !got.Status.Late {
		t.Errorf("%+v", got)
	}
	if sample.Links[0].Status.Late {
		t.Error("the agent's own sample was changed")
	}
}
