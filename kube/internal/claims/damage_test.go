// SPDX-License-Identifier: Apache-2.0

package claims_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/test/testenv"
)

// newer is a claim as a newer version might write it.
const newer = `{"uid":"u1","version":2,"ports":{"f1u":{"link":7}}}`

// TestADamagedClaimBlocksNoOther walks files × damages × operations. A claim that cannot be read
// is set aside and named; whatever else is in the way is replaced.
func TestADamagedClaimBlocksNoOther(t *testing.T) {
	saying(t, io.Discard)
	ctx := context.Background()
	operations := map[string]func(s *claims.Store) error{
		"prepare":   func(s *claims.Store) error { return s.Add(ctx, claim("u1", "du")) },
		"unprepare": func(s *claims.Store) error { return s.Remove(ctx, "u1", none) },
		"list":      func(s *claims.Store) error { return listed(s.List(ctx)) },
		"gc": func(s *claims.Store) error {
			return s.Use(ctx, func(all []claims.Claim) error { return listed(all, nil) })
		},
		"update": func(s *claims.Store) error { return s.Update(ctx, func(c *claims.Claim) bool { return c.UID == "u2" }) },
		"peek":   func(s *claims.Store) error { return listed(s.Peek()) },
	}
	for _, file := range []string{"u1/claim.json", "u1/claim.json.new", "u1/ports", "u2/claim.json.new", "u1", ".damaged-u1", ".lock", "lost+found"} {
		for name, damage := range testenv.Damages(newer) {
			for operation, do := range operations {
				s, dir := open(t)
				testenv.Must(t, errors.Join(s.Add(ctx, claim("u1", "du")), s.Add(ctx, claim("u2", "cu-up"))))
				damage(t, filepath.Join(dir, file))
				what := operation + " while " + file + " is " + name
				if err := do(s); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				checkOthers(t, s, dir, file, what)
			}
		}
	}
}

// saying has warnings written there until the end of the test.
func saying(t *testing.T, to io.Writer) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(to, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
}

// listed checks that the claim which is not damaged is there.
func listed(all []claims.Claim, err error) error {
	if !slices.ContainsFunc(all, func(c claims.Claim) bool { return c.UID == "u2" }) {
		return errors.Join(err, errors.New("u2 is not listed"))
	}
	return err
}

// checkOthers checks that the pods of both claims can end, and start again.
func checkOthers(t *testing.T, s *claims.Store, dir, file, what string) {
	t.Helper()
	ctx := context.Background()
	all, err := s.List(ctx)
	if err := listed(all, err); err != nil {
		t.Errorf("after %s: %v", what, err)
	}
	for _, c := range all {
		if info, err := os.Lstat(s.Ports(c.UID)); err != nil || !info.IsDir() {
			t.Errorf("after %s: the ports of %s are %v, %v", what, c.UID, info, err)
		}
	}
	for _, again := range []error{s.Add(ctx, claim("u1", "du")), s.Remove(ctx, "u1", none), s.Remove(ctx, "u2", none)} {
		if again != nil {
			t.Errorf("after %s: %v", what, again)
		}
	}
	left, err := os.ReadDir(dir)
	testenv.Must(t, err)
	for _, e := range left {
		if e.Name() != ".lock" && e.Name() != file {
			t.Errorf("after %s: %s is left", what, e.Name())
		}
	}
}

// TestADamagedClaimIsNamed, and kept until its pod has ended.
func TestADamagedClaimIsNamed(t *testing.T) {
	said := &bytes.Buffer{}
	saying(t, said)
	for name, damage := range testenv.Damages(newer) {
		s, dir := open(t)
		ctx := context.Background()
		testenv.Must(t, errors.Join(s.Add(ctx, claim("u1", "du")), s.Add(ctx, claim("u2", "cu-up"))))
		damage(t, filepath.Join(dir, "u1", "claim.json"))
		said.Reset()
		for range 2 {
			testenv.Must(t, listed(s.List(ctx)))
		}
		aside := filepath.Join(dir, ".damaged-u1")
		if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "claim=u1") || !strings.Contains(text, aside) {
			t.Errorf("%s: it said %s", name, text)
		}
		if _, err := os.Lstat(filepath.Join(aside, "claim.json")); err != nil {
			t.Errorf("%s: it is not kept: %v", name, err)
		}
	}
}

// TestAClaimThatDescribesNoPortIsSetAside: what reads it later would fail at each attempt.
func TestAClaimThatDescribesNoPortIsSetAside(t *testing.T) {
	s, dir := open(t)
	ctx := context.Background()
	testenv.Must(t, errors.Join(s.Add(ctx, claim("u1", "du")), s.Add(ctx, claim("u2", "cu-up"))))
	saying(t, io.Discard)
	for _, ends := range []string{``, `{"function":"du","port":"f1u"}`} {
		testenv.Must(t, s.Add(ctx, claim("u1", "du")))
		text := `{"uid":"u1","ports":[{"function":"du","port":"f1u","link":{"ends":[` + ends + `]}}]}`
		testenv.Must(t, os.WriteFile(filepath.Join(dir, "u1", "claim.json"), []byte(text), 0o600))
		if all, err := s.List(ctx); err != nil || len(all) != 1 {
			t.Errorf("ends %s: %+v, %v", ends, all, err)
		}
	}
}

// TestAClaimThatCannotBeReadNowIsKept: its pod works on.
func TestAClaimThatCannotBeReadNowIsKept(t *testing.T) {
	saying(t, io.Discard)
	s, dir := open(t)
	ctx := context.Background()
	testenv.Must(t, errors.Join(s.Add(ctx, claim("u1", "du")), s.Add(ctx, claim("u2", "cu-up"))))
	end := testenv.Unreadable(t, filepath.Join(dir, "u1", "claim.json"))
	for what, list := range map[string]func() ([]claims.Claim, error){"list": func() ([]claims.Claim, error) { return s.List(ctx) }, "peek": s.Peek} {
		if all, err := list(); err == nil { // what is left out of a list is removed from the node
			t.Errorf("%s: %+v", what, all)
		}
	}
	end()
	if all, err := s.List(ctx); err != nil || len(all) != 2 {
		t.Errorf("later: %+v, %v", all, err)
	}
}

// TestPeekSaysNothingOfDamage: it sets nothing aside, and is called for each pod.
func TestPeekSaysNothingOfDamage(t *testing.T) {
	said := &bytes.Buffer{}
	saying(t, said)
	s, dir := open(t)
	ctx := context.Background()
	testenv.Must(t, errors.Join(s.Add(ctx, claim("u1", "du")), s.Add(ctx, claim("u2", "cu-up"))))
	testenv.Damages(newer)["garbage"](t, filepath.Join(dir, "u1", "claim.json"))
	if all, err := s.Peek(); err != nil || len(all) != 1 || said.Len() > 0 {
		t.Errorf("%+v, %v; it said %s", all, err, said)
	}
}
