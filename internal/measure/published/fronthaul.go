// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

const (
	// fronthaulWarm is how many seconds both ends may take to settle, and fronthaulTimes how many trials long
	// their counters are read.
	fronthaulWarm, fronthaulTimes = 3, 8
	// fronthaulPatience bounds the time until the radio unit gets its first message.
	fronthaulPatience = 60 * time.Second
	// fronthaulVerify is roughly how long the judgement of the link takes, and fronthaulStart the start of both ends.
	fronthaulVerify, fronthaulStart = 20 * time.Second, 5 * time.Second
	// fronthaulLog is how many lines of log are read: more than an end writes in a trial.
	fronthaulLog = 1 << 12
)

// fronthaulTime is roughly how long the link is judged and both ends are observed.
func fronthaulTime(c experiment.Cell, trial time.Duration) time.Duration {
	if c.Event != "" {
		return 2 * (fronthaulStart + fronthaulWarm*time.Second)
	}
	return fronthaulVerify + fronthaulStart + fronthaulWarm*time.Second + fronthaulTimes*trial
}

// fronthaul judges the link, and then compares this with what its two ends count; or, with an event, kills an end.
func fronthaul(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	t := record.Trial{Quantity: record.QFronthaul, Start: time.Now(), Marks: []string{}, Link: fronthaulLink, Runtimes: map[string]string{fronthaulDU: string(c.Runtime)}}
	t.Experiment = &record.Experiment{Values: map[string]float64{}, Why: map[string]string{}}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	if c.Event == "" && !judgedInUse(c) {
		if err := judgeLink(ctx, r, live, live.State.Plan.Links[0], nil, &t, "link_met"); err != nil {
			return t, err
		}
	}
	for _, end := range []string{fronthaulDU, fronthaulRU} { // of a memif link the first end listens
		if err := fronthaulStarted(ctx, live, end); err != nil {
			return t, err
		}
	}
	if c.Event == "" {
		err = fronthaulCounted(ctx, r, live, c, &t)
	} else {
		err = fronthaulKilled(ctx, live, c, &t)
	}
	if err != nil {
		return t, fmt.Errorf("%w; the last output of the radio unit: %s; of the distributed unit: %s", err, live.LogTail(fronthaulRU, 2), live.LogTail(fronthaulDU, 2))
	}
	t.Duration = time.Since(t.Start)
	return t, nil
}

// judgedInUse reports whether the link can be judged while its ends use it: by their own traffic, or by instruments
// next to them. Other links are judged before, by draygen in the place of both ends.
func judgedInUse(c experiment.Cell) bool { return c.Transport == "shm" || c.Face == chain.FaceNetdev }

// fronthaulStarted starts the command of an end, which waits for a signal.
func fronthaulStarted(ctx context.Context, live *node.Live, end string) error {
	waits := func() bool { return strings.Contains(live.LogTail(end, 1), ready) }
	if err := awaitRunning(ctx, live, "", fronthaulPatience, end+" waits", waits); err != nil {
		return err
	}
	return wake(ctx, live, end)
}

// radioCounted is what the radio unit has counted since it started.
func radioCounted(live *node.Live) (all fronthaulCounters) {
	for _, line := range strings.Split(live.LogTail(fronthaulRU, fronthaulLog), "\n") {
		if one, ok := radioSecond(line); ok {
			all = all.plus(one)
		}
	}
	return all
}

// unitCounted is what the distributed unit has counted since it started. Its log is long: while both ends are measured,
// it is not read.
func unitCounted(live *node.Live) (all fronthaulCounters, unsent float64) {
	for _, line := range strings.Split(live.LogTail(fronthaulDU, fronthaulLog), "\n") {
		if one, late, ok := unitSecond(line); ok {
			all, unsent = all.plus(one), unsent+late
		}
	}
	return all, unsent
}

// fronthaulSettled waits until the radio unit gets messages, and both ends have settled. Until then the radio unit may be
// started again, and wait again: of a memif link it ends if the other end does not listen soon.
func fronthaulSettled(ctx context.Context, live *node.Live) error {
	got := func() bool {
		if strings.Contains(live.LogTail(fronthaulRU, 1), ready) {
			_ = wake(ctx, live, fronthaulRU) // else the next time
		}
		return radioCounted(live).all() > 0
	}
	if err := awaitRunning(ctx, live, "", fronthaulPatience, "the radio unit gets messages", got); err != nil {
		return err
	}
	return host.Sleep(ctx, fronthaulWarm*time.Second)
}

// fronthaulCounted reads the counters of both ends over some trials.
func fronthaulCounted(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell, t *record.Trial) error {
	if err := fronthaulSettled(ctx, live); err != nil {
		return err
	}
	ru := radioCounted(live)
	du, unsent := unitCounted(live)
	if judgedInUse(c) {
		var held []string
		if c.Face == chain.FaceDPDK {
			held = []string{fronthaulLink}
		}
		if err := judgeLink(ctx, r, live, live.State.Plan.Links[0], held, t, "link_met"); err != nil {
			return err
		}
	}
	enough := func() bool {
		return radioCounted(live).seconds-ru.seconds >= int(fronthaulTimes*r.Run.Trial/time.Second)
	}
	if err := awaitRunning(ctx, live, "", fronthaulPatience, "the radio unit counts", enough); err != nil {
		return err
	}
	duNow, unsentNow := unitCounted(live)
	got, up := radioCounted(live).minus(ru), duNow.minus(du)
	t.Raw += fmt.Sprintf("at the radio unit: %+v; at the distributed unit: %+v, and %v not sent in time\n", got, up, unsentNow-unsent)
	return fronthaulFigures(t.Experiment, got, up, unsentNow-unsent)
}

// fronthaulFigures are the shares of the messages, and whether they agree with the verdict.
func fronthaulFigures(e *record.Experiment, ru, du fronthaulCounters, unsent float64) error {
	if ru.all() == 0 || du.all() == 0 {
		return fmt.Errorf("the radio unit got %v messages, and the distributed unit %v", ru.all(), du.all())
	}
	v := e.Values
	v["on_time"], v["early"], v["late"] = ru.share(ru.onTime), ru.share(ru.early), ru.share(ru.late)
	v["sequence_gaps"], v["uplink_late"] = ru.gaps/ru.all()*mega, du.share(du.late)
	v["late_at_du"] = unsent / (ru.all() + unsent) * 100
	v["message_rate"] = ru.all() / float64(ru.seconds) / 1e3
	fronthaulAgrees(e, ru, unsent)
	return nil
}

// fronthaulAgrees compares the counters with the verdict. By the counters the link is good if at most as many messages
// came late, or are missing, as the requirements allow; those are not missing that the distributed unit did not send. A
// good link does not make an end punctual that has too little CPU: then nothing is known.
func fronthaulAgrees(e *record.Experiment, ru fronthaulCounters, unsent float64) {
	const figure = "agrees"
	good := ru.late <= ru.all()*(1-fronthaulPercentile/100) && ru.gaps-unsent <= ru.all()*fronthaulLoss
	met, judged := e.Values["link_met"]
	switch {
	case !judged:
		e.Why[figure] = e.Why["link_met"]
	case met == 1 && !good:
		e.Why[figure] = "the link meets its requirements, and messages came late all the same: the ends had too little CPU"
	case good == (met == 1):
		e.Values[figure] = 1
	default:
		e.Values[figure] = 0
	}
}
