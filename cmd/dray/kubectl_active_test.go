// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// aStandIn is what the fake kubectl does during an active verification; "" is the usual.
type aStandIn struct {
	of, copies, apply, pods, chain, draygen, remove, record, nodes string // shell commands
}

const (
	standInCreated = "echo chain.drayage.io/f1-dray-verify created; echo pod/f1-dray-verify-cu-up created; echo pod/f1-dray-verify-du created"
	standInObjects = "f1-split/Pod/f1-dray-verify-du f1-split/Pod/f1-dray-verify-cu-up f1-split/Chain/f1-dray-verify"
	noCopies       = `echo '{"items": []}'`
	// asRecorded is a command of sed. The chain then has the load of the recorded trial.
	asRecorded = `s/"requires": {/"load": "400Mbps", &/; s/1600/1500/; `
)

// start puts the fake kubectl on the PATH. In it, draygen prints what was recorded of a real one.
func (s aStandIn) start(t *testing.T) (calls, deleted func() string) {
	t.Helper()
	or := func(own, usual string) string {
		if own == "" {
			return usual
		}
		return own
	}
	dir := t.TempDir()
	samples := filepath.Join(recorded, "../../../../internal/measure/instrument/testdata")
	workIn(t, t.TempDir())
	calls = fakeKubectl(t,
		answer{contains: " get --ignore-not-found ", script: "true"},
		answer{contains: " --subresource=status ", script: "cd " + dir + "; cat >recorded; " + or(s.record, "true")},
		answer{contains: " apply ", script: "cat >" + dir + "/applied; " + or(s.apply, standInCreated)},
		answer{contains: " delete ", script: "cat >" + dir + "/deleted; " + or(s.remove, "true")},
		answer{contains: " --version ", script: "echo draygen 0.2.0"},
		answer{contains: " sink ", script: or(s.draygen, "cd "+dir+"; rm -f sent; head -n 1 "+samples+"/draygen-sink.json; until [ -e sent ]; do sleep 0.01; done; tail -n 1 "+samples+"/draygen-sink.json")},
		answer{contains: " send ", script: or(s.draygen, `echo '{"draygen":1,"event":"open"}'; cat >/dev/null; cat `+samples+"/draygen-send.json; touch "+dir+"/sent")},
		answer{contains: " configmaps ", file: "inventories.json"},
		answer{contains: " current-context ", script: "echo lab"},
		answer{contains: " nodes ", script: or(s.nodes, "cat "+filepath.Join(recorded, "nodes.json"))},
		answer{contains: " --field-selector=metadata.name=f1-dray-verify ", script: or(s.copies, noCopies)},
		answer{contains: "stands-in-for", script: or(s.pods, `echo '`+standInPods("Running", `"conditions": [{"type": "Ready", "status": "True"}]`)+`'`)},
		answer{contains: " pods ", file: "pods.json"},
		answer{contains: " chains.drayage.io f1 ", script: or(s.of, aRun{}.edited(t, asRecorded))},
		answer{contains: " chains.drayage.io f1-dray-verify ", script: or(s.chain, s.copied(t, ""))})
	return calls, func() string { return namesOf(t, filepath.Join(dir, "deleted")) }
}

// workIn makes a directory the working one until the test ends.
func workIn(t *testing.T, dir string) {
	t.Helper()
	before, err := os.Getwd()
	if err == nil {
		err = os.Chdir(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chdir(before); err != nil {
			t.Fatal(err)
		}
	})
}

// copied is the recorded chain as its copy, after another command of sed.
func (aStandIn) copied(t *testing.T, change string) string {
	t.Helper()
	return aRun{}.edited(t, asRecorded+`s/"name": "f1"/"name": "f1-dray-verify"/; s/"pod": "/&f1-dray-verify-/; s/"uid": "7/"uid": "8/; `+change)
}

// standInPods is a list of two pods with this status.
func standInPods(phase, status string) string {
	pod := `{"metadata": {"name": "f1-dray-verify-NAME"}, "status": {"phase": "` + phase + `", ` + status + `}}`
	return `{"items": [` + strings.Replace(pod, "NAME", "cu-up", 1) + "," + strings.Replace(pod, "NAME", "du", 1) + "]}"
}

func TestActiveVerification(t *testing.T) {
	calls, deleted := aStandIn{}.start(t)
	out, errs, code := kubectlDray("verify f1 -n f1-split --active --profile quick --seed 7")
	if deleted() != standInObjects || code != exitOK {
		t.Errorf("exit code %d, deleted %q", code, deleted())
	}
	holds(t, "the table", out, "chain f1-split/f1  ready", "cu-up.f1u (pod f1-dray-verify-cu-up on n2)",
		"latency            ≤ 5ms at p99        3.47ms one-way latency at p99", "packet_loss_ratio  ≤ 0.001 at 400Mbps  0 (0 of 101904)", "met")
	holds(t, "standard error", errs, "Starting draygen in 2 pods, as chain f1-dray-verify\n", "Measuring for about ", ", seed 7\n",
		"Deleting the 3 objects that this run created\n")
	holds(t, "the calls", calls(),
		"exec --stdin --namespace=f1-split f1-dray-verify-du --container=draygen -- /draygen sink --port dray:f1u --stream ",
		"exec --stdin --namespace=f1-split f1-dray-verify-cu-up --container=draygen -- /draygen send --port dray:f1u --hold --stream ", "-- /draygen --version\n")
}

// TestActiveVerificationAsDocument says how it measured.
func TestActiveVerificationAsDocument(t *testing.T) {
	aStandIn{}.start(t)
	out, _, code := kubectlDray("verify f1 --active --profile quick --seed 7 --json")
	var got struct {
		Schema string
		Chains []clusterChain
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Schema != schemaCluster || len(got.Chains) != 1 || code != exitOK {
		t.Fatalf("%v, exit code %d: %s", err, code, out)
	}
	c := got.Chains[0]
	if c.Active == nil || c.Active.Profile != "quick" || c.Active.Seed != 7 || c.Active.Directory == "" || len(c.Links) != 1 || len(c.Links[0].Requirements) != 2 || c.Links[0].Requirements[0].Since.IsZero() {
		t.Errorf("%+v", c)
	}
}

// TestActiveVerificationExitCodes: the copy's measurement decides, whatever the nodes saw of the chain.
func TestActiveVerificationExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		standIn aStandIn
		want    int
	}{
		"missed":        {aStandIn{chain: aStandIn{}.copied(t, `s/"latency": "5ms"/"latency": "20us"/; s/"percentile": 99/"percentile": 50/; s/"spec": {/&"policy": {"on_infeasible": "warn"},/`)}, exitMissed},
		"undecided":     {aStandIn{draygen: "exit 1"}, exitNotMeasurable},
		"infeasible":    {aStandIn{of: aRun{}.edited(t, `s/"reason": "Planned"/"reason": "Infeasible"/`)}, exitInfeasible},
		"copy refused":  {aStandIn{chain: aStandIn{}.copied(t, `s/"reason": "Planned"/"reason": "Infeasible"/`)}, exitInfeasible},
		"no pods":       {aStandIn{of: aRun{}.edited(t, `/"Ready",/{n;s/True/False/}`)}, exitError},
		"no node known": {aStandIn{of: aRun{}.edited(t, `s/"node": "n2",//`)}, exitError},
	} {
		_, deleted := c.standIn.start(t)
		out, errs, code := kubectlDray("verify f1 --active --profile quick")
		if started := strings.Contains(errs, "Starting draygen"); code != c.want || started != (deleted() == standInObjects) {
			t.Errorf("%s: exit code %d, want %d, deleted %q:\n%s%s", name, code, c.want, deleted(), out, errs)
		}
	}
}

// TestActiveVerificationThatFailsLeavesNothing names the cause, and what helps.
func TestActiveVerificationThatFailsLeavesNothing(t *testing.T) {
	waiting := func(reason string) string {
		return `echo '` + standInPods("Pending", `"containerStatuses": [{"state": {"waiting": {"reason": "`+reason+`", "message": "no such image"}}}]`) + `'`
	}
	for name, c := range map[string]struct {
		standIn       aStandIn
		deleted, want string
	}{
		"no image":      {aStandIn{pods: waiting("ImagePullBackOff")}, standInObjects, "dray: pod f1-dray-verify-cu-up does not start: ImagePullBackOff: no such image; try: make the image of draygen"},
		"slow":          {aStandIn{pods: waiting("ErrImagePull")}, standInObjects, "dray: chain f1-dray-verify does not run after 0s: it is ready: on n1, n2; pod f1-dray-verify-cu-up is starting\n"},
		"no node":       {aStandIn{pods: `echo '` + standInPods("Pending", `"conditions": [{"type": "PodScheduled", "status": "False", "message": "too full"}]`) + `'`}, standInObjects, "pod f1-dray-verify-cu-up has no node: too full\n"},
		"ended":         {aStandIn{pods: `echo '` + standInPods("Failed", `"message": "evicted"`) + `'`}, standInObjects, "dray: pod f1-dray-verify-cu-up has ended: evicted\n"},
		"gone":          {aStandIn{pods: noCopies}, standInObjects, "dray: 2 of the 2 pods of the copy are gone\n"},
		"quota":         {aStandIn{apply: "echo chain.drayage.io/f1-dray-verify created; echo 'Error from server (Forbidden): pods is forbidden: exceeded quota: small' >&2; exit 1"}, "f1-split/Chain/f1-dray-verify", "dray: the quota of the namespace leaves no room for it: Error from server (Forbidden)"},
		"PodSecurity":   {aStandIn{apply: "echo 'Error from server (Forbidden): pods is forbidden: violates PodSecurity' >&2; exit 1"}, "", "dray: the PodSecurity level of the namespace refuses it: Error"},
		"another run":   {aStandIn{apply: "echo chain.drayage.io/f1-dray-verify unchanged; echo pod/f1-dray-verify-du created"}, "f1-split/Pod/f1-dray-verify-du", "dray: another user creates chain f1-dray-verify at the same time\n"},
		"being used":    {aStandIn{copies: oneCopy("f1", time.Now().Add(time.Hour))}, "", "dray: chain f1-split/f1-dray-verify exists: the chain is being measured, or such a run was killed; try: kubectl delete chains,pods --namespace=f1-split --selector=drayage.io/stands-in-for=f1\n"},
		"another chain": {aStandIn{copies: oneCopy("", time.Now().Add(-time.Hour))}, "", "dray: chain f1-split/f1-dray-verify has the name that a copy of chain f1 would have, and is none\n"},
		"not deleted":   {aStandIn{remove: "echo error: timed out >&2; exit 1"}, standInObjects, "dray: not everything that this run created is deleted: kubectl: error: timed out\n"},
	} {
		_, deleted := c.standIn.start(t)
		_, errs, code := kubectlDray("verify f1 --active --profile quick --timeout 0")
		if code != exitError || deleted() != c.deleted {
			t.Errorf("%s: exit code %d, deleted %q", name, code, deleted())
		}
		holds(t, name, errs, c.want)
	}
}

// oneCopy lists a chain that is a copy of another, and until when its pods run.
func oneCopy(of string, until time.Time) string {
	return `echo '{"items": [{"metadata": {"labels": {"drayage.io/stands-in-for": "` + of + `"}, "annotations": {"drayage.io/stands-in-until": "` + until.UTC().Format(time.RFC3339) + `"}}}]}'`
}

// TestAnAbandonedCopyIsReplaced: an earlier run was killed, so its time is over.
func TestAnAbandonedCopyIsReplaced(t *testing.T) {
	calls, _ := aStandIn{copies: oneCopy("f1", time.Now().Add(-time.Minute))}.start(t)
	_, errs, code := kubectlDray("verify f1 --active --profile quick")
	all := strings.Split(calls(), "\n")
	first := slices.IndexFunc(all, func(c string) bool { return strings.Contains(c, " delete ") })
	apply := slices.IndexFunc(all, func(c string) bool { return strings.Contains(c, " apply ") })
	if code != exitOK || first < 0 || apply < first {
		t.Errorf("exit code %d, deleted in call %d, applied in call %d", code, first, apply)
	}
	holds(t, "standard error", errs, "Deleting chain f1-dray-verify, which a killed run left\n")
}

// TestActiveVerificationDeletesAfterASignal: while the pods start, and during a trial.
func TestActiveVerificationDeletesAfterASignal(t *testing.T) {
	const now = "touch $(dirname $0)/now; "
	for name, s := range map[string]aStandIn{
		"start":   {pods: now + `echo '` + standInPods("Pending", `"conditions": []`) + `'`},
		"measure": {draygen: now + "sleep 60"},
	} {
		calls, deleted := s.start(t)
		began := time.Now()
		var out, errs bytes.Buffer
		err := runKubectl(signalled(filepath.Join(strings.Split(os.Getenv("PATH"), ":")[0], "now")), []string{"verify", "f1", "--active", "--profile", "quick"}, &out, &errs)
		if code := exitCode(err, &errs); code != 128+int(syscall.SIGTERM) || out.Len() > 0 || deleted() != standInObjects || time.Since(began) > 30*time.Second {
			t.Errorf("%s: exit code %d, deleted %q: %s%s%s", name, code, deleted(), out.String(), errs.String(), calls())
		}
		holds(t, name, errs.String(), "dray: interrupted")
	}
}

// TestRecord: the outcome is one condition of the chain, and a failure is one as well.
func TestRecord(t *testing.T) {
	for name, c := range map[string]struct {
		standIn              aStandIn
		code                 int
		status, reason, text string
	}{
		"met":       {aStandIn{}, exitOK, "True", "Met", "2 met on 20"},
		"missed":    {aStandIn{chain: aStandIn{}.copied(t, `s/"latency": "5ms"/"latency": "20us"/; s/"percentile": 99/"percentile": 50/; s/"spec": {/&"policy": {"on_infeasible": "warn"},/`)}, exitMissed, "False", "Missed", "1 met, 1 missed (link f1u, latency) on 20"},
		"undecided": {aStandIn{draygen: "exit 1"}, exitNotMeasurable, "Unknown", "NotMeasurable", "0 met, 2 not measurable (link f1u, latency; link f1u, packet_loss_ratio) on 20"},
		"failed":    {aStandIn{pods: noCopies}, exitError, "Unknown", "Failed", "2 of the 2 pods of the copy are gone"},
	} {
		file := filepath.Join(t.TempDir(), "recorded")
		c.standIn.record = "cp recorded " + file
		calls, deleted := c.standIn.start(t)
		_, errs, code := kubectlDray("verify f1 --active --profile quick --seed 7 --record")
		text, err := os.ReadFile(file)
		var o struct {
			Metadata struct{ Name, Namespace string }
			Status   struct {
				Conditions []struct {
					Type, Status, Reason, Message string
					LastTransitionTime            time.Time
					ObservedGeneration            int
				}
			}
		}
		if err != nil || json.Unmarshal(text, &o) != nil || len(o.Status.Conditions) != 1 || code != c.code || deleted() != standInObjects {
			t.Fatalf("%s: %v, exit code %d: %s%s", name, err, code, text, errs)
		}
		q := o.Status.Conditions[0]
		if q.Type != "Verified" || q.Status != c.status || q.Reason != c.reason || !strings.HasPrefix(q.Message, c.text) || q.LastTransitionTime.IsZero() || q.ObservedGeneration != 1 || o.Metadata.Name != "f1" || o.Metadata.Namespace != "f1-split" {
			t.Errorf("%s: %+v", name, o)
		}
		holds(t, name, calls(), " apply --server-side --force-conflicts --field-manager=dray-verify --subresource=status --filename=-\n")
	}
}

// TestRecordThatIsRefused does not hide the verdicts.
func TestRecordThatIsRefused(t *testing.T) {
	aStandIn{record: "echo 'Error from server (Forbidden): no' >&2; exit 1"}.start(t)
	out, errs, code := kubectlDray("verify f1 --active --profile quick --record")
	if code != exitError || !strings.Contains(out, "met") {
		t.Errorf("exit code %d: %s", code, out)
	}
	holds(t, "standard error", errs, "dray: the outcome is not recorded: the cluster refuses it: ")
}

// TestWhatWasRecordedIsShown, and that it is about an earlier chain.
func TestWhatWasRecordedIsShown(t *testing.T) {
	verified := `s/"conditions": \[/&{"type": "Verified", "status": "False", "message": "1 missed", "observedGeneration": 1, "lastTransitionTime": "2026-11-23T09:37:46Z"},/; `
	for change, want := range map[string]string{"": "  verified         missed  1 missed\n", `s/"generation": 1/"generation": 2/; s/^  "observedGeneration": 1/  "observedGeneration": 2/`: "  verified         missed  before the chain changed: 1 missed\n"} {
		fakeKubectl(t, answer{contains: "get", script: aRun{}.edited(t, verified+change)})
		out, _, code := kubectlDray("status f1")
		if holds(t, "the table", out, want); code != exitOK {
			t.Errorf("exit code %d", code)
		}
		if out, _, _ = kubectlDray("status f1 --json"); !strings.Contains(out, `"verified": {`) {
			t.Errorf("the document lacks it: %s", out)
		}
	}
}

func TestActiveVerificationUsage(t *testing.T) {
	calls := fakeKubectl(t)
	for _, line := range []string{"verify f1 --profile quick", "verify f1 --image x", "verify f1 --seed 1", "verify f1 --out x", "verify f1 --record", "verify f1 --active --profile slow"} {
		if _, errs, code := kubectlDray(line); code != exitUsage {
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		}
	}
	if calls() != "" {
		t.Errorf("wrong usage calls kubectl: %s", calls())
	}
}
