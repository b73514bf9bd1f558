// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// world records, in order, what was journaled, done and removed.
type world struct {
	log       []string
	failAt    string // what fails: "journal a", "do a", "remove a"
	cancelled bool   // whether a removal saw a cancelled context
}

var errFault = errors.New("fault")

func (w *world) note(what string) error {
	w.log = append(w.log, what)
	if what == w.failAt {
		return errFault
	}
	return nil
}

func (w *world) Append(rs ...Resource) error {
	for _, r := range rs {
		if err := w.note("journal " + r.Name); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) step(name string, makes ...string) Step {
	s := Step{Name: "make " + name, Do: func(context.Context) error { return w.note("do " + name) }}
	for _, m := range makes {
		s.Makes = append(s.Makes, Resource{Kind: "thing", Name: m})
	}
	return s
}

func (w *world) runner() *Runner {
	return &Runner{Journal: w, Removers: Removers{"thing": func(ctx context.Context, r Resource) error {
		w.cancelled = w.cancelled || ctx.Err() != nil
		return w.note("remove " + r.Name)
	}}}
}

func (w *world) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(w.log, want) {
		t.Errorf("happened:\n %s\nwant:\n %s", strings.Join(w.log, ", "), strings.Join(want, ", "))
	}
}

func TestRunInOrder(t *testing.T) {
	w := &world{}
	r := w.runner()
	var progress []string
	r.Progress = func(s Step) { progress = append(progress, s.Name) }
	if err := r.Run(context.Background(), []Step{w.step("a", "a1", "a2"), w.step("b", "b")}); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "journal a1", "journal a2", "do a", "journal b", "do b")
	if !slices.Equal(progress, []string{"make a", "make b"}) {
		t.Errorf("progress %v", progress)
	}
}

// TestFailureUndoes: any failure removes everything that may exist, in reverse
// order, and the error names the step and its cause.
func TestFailureUndoes(t *testing.T) {
	for _, test := range []struct {
		failAt string
		want   []string
	}{
		{"do b", []string{"journal a1", "journal a2", "do a", "journal b", "do b", "remove b", "remove a2", "remove a1"}},
		{"do a", []string{"journal a1", "journal a2", "do a", "remove a2", "remove a1"}},
		// The journal may have been written despite its error.
		{"journal b", []string{"journal a1", "journal a2", "do a", "journal b", "remove b", "remove a2", "remove a1"}},
	} {
		t.Run(test.failAt, func(t *testing.T) {
			w := &world{failAt: test.failAt}
			err := w.runner().Run(context.Background(), []Step{w.step("a", "a1", "a2"), w.step("b", "b"), w.step("c", "c")})
			w.expect(t, test.want...)
			stepName := "make " + test.failAt[len(test.failAt)-1:]
			if !errors.Is(err, errFault) || !strings.HasPrefix(err.Error(), stepName+": ") {
				t.Errorf("error %v does not name %q", err, stepName)
			}
		})
	}
}

func TestFaultInjection(t *testing.T) {
	for _, test := range []struct {
		phase Phase
		want  []string
	}{
		{Before, []string{"journal a", "do a", "journal b", "remove b", "remove a"}},
		{After, []string{"journal a", "do a", "journal b", "do b", "remove b", "remove a"}},
	} {
		w := &world{}
		r := w.runner()
		r.Fault = func(s Step, p Phase) error {
			if s.Name == "make b" && p == test.phase {
				return errFault
			}
			return nil
		}
		if err := r.Run(context.Background(), []Step{w.step("a", "a"), w.step("b", "b")}); !errors.Is(err, errFault) {
			t.Errorf("%s: error %v", test.phase, err)
		}
		w.expect(t, test.want...)
	}
}

// TestCancelled: no further step begins, and removal does not see the
// cancellation.
func TestCancelled(t *testing.T) {
	w := &world{}
	ctx, cancel := context.WithCancel(context.Background())
	first := w.step("a", "a")
	first.Do = func(context.Context) error { cancel(); return w.note("do a") }
	r := w.runner()
	r.Failed = func() { t.Error("an interrupt counts as a failure") }
	err := r.Run(ctx, []Step{first, w.step("b", "b")})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	w.expect(t, "journal a", "do a", "remove a")
	if w.cancelled {
		t.Error("removal ran under the cancelled context")
	}
}

// TestRemoveTriesAll: if one removal fails, the others are still tried, and no
// error is lost.
func TestRemoveTriesAll(t *testing.T) {
	w := &world{failAt: "remove b"}
	err := w.runner().Remove(context.Background(), []Resource{
		{Kind: "thing", Name: "a"}, {Kind: "unknown", Name: "x"}, {Kind: "thing", Name: "b"}, {Kind: "thing", Name: "c"},
	})
	w.expect(t, "remove c", "remove b", "remove a")
	if !errors.Is(err, errFault) || !strings.Contains(err.Error(), "remove unknown x: no remover") {
		t.Errorf("error %v", err)
	}
}

// TestRemovalErrorDoesNotHideTheCause: both are in the error.
func TestRemovalErrorDoesNotHideTheCause(t *testing.T) {
	w := &world{failAt: "remove a"}
	cause := errors.New("cause")
	s := w.step("a", "a")
	s.Do = func(context.Context) error { return cause }
	err := w.runner().Run(context.Background(), []Step{s})
	if !errors.Is(err, cause) || !errors.Is(err, errFault) {
		t.Errorf("error %v", err)
	}
}

func TestResourceString(t *testing.T) {
	r := Resource{Kind: "link", Name: "f1u", Netns: "/run/dray/x/net", Path: "/p"}
	if got := r.String(); got != "link f1u /p in /run/dray/x/net" {
		t.Error(got)
	}
}
