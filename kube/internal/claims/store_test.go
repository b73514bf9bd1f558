// SPDX-License-Identifier: Apache-2.0

package claims_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
)

func open(t *testing.T) (*claims.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "claims")
	s, err := claims.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// claim is a claim of pod p for one port of a function.
func claim(uid, function string) claims.Claim {
	link := plan.Link{Name: "f1u", Transport: "shm", Ends: []plan.End{{Function: "cu-up", Port: "f1u"}, {Function: "du", Port: "f1u"}}}
	return claims.Claim{
		UID: types.UID(uid), Namespace: "ran", Name: "c-" + uid, Pod: "pod-" + uid, User: 1000, Since: time.Unix(100, 0).UTC(),
		Ports: []claims.Port{{PortParameters: v1alpha1.NewPortParameters("f1", function, "f1u", link, nil), Request: "f1u", Pool: "n1", Device: "native"}},
	}
}

func none([]claims.Claim) error { return nil }

func TestAClaimIsKeptUntilItIsRemoved(t *testing.T) {
	s, dir := open(t)
	ctx := context.Background()
	want := claim("u1", "du")
	for range 2 { // the kubelet may ask again
		if err := s.Add(ctx, want); err != nil {
			t.Fatal(err)
		}
	}
	again, err := claims.Open(dir) // another instance of the daemon
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.List(ctx)
	if err != nil || !reflect.DeepEqual(got, []claims.Claim{want}) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "u1"): 0o700, s.Ports("u1"): 0o755} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want mode %o", path, info, err, mode)
		}
	}
	for range 2 {
		if err := again.Remove(ctx, "u1", none); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "u1")); !os.IsNotExist(err) {
		t.Errorf("the directory of a removed claim: %v", err)
	}
}

func TestAPortBelongsToOneClaim(t *testing.T) {
	s, _ := open(t)
	ctx := context.Background()
	if err := errors.Join(s.Add(ctx, claim("u1", "du")), s.Add(ctx, claim("u2", "cu-up"))); err != nil {
		t.Fatal(err)
	}
	other := claim("u3", "du")
	var held *claims.HeldError
	if err := s.Add(ctx, other); !errors.As(err, &held) || held.By.UID != "u1" || !strings.Contains(err.Error(), "pod-u1") {
		t.Errorf("a second claim for a port: %v", err)
	}
	other.Namespace = "elsewhere"
	if err := s.Add(ctx, other); err != nil {
		t.Errorf("a chain of the same name in another namespace: %v", err)
	}
}

func TestAClaimStaysIfItsLinksCannotBeRemoved(t *testing.T) {
	s, _ := open(t)
	ctx := context.Background()
	if err := s.Add(ctx, claim("u1", "du")); err != nil {
		t.Fatal(err)
	}
	fails := errors.New("no broker")
	err := s.Remove(ctx, "u1", func(stay []claims.Claim) error {
		if len(stay) != 0 {
			t.Errorf("%+v stay", stay)
		}
		return fails
	})
	if all, listed := s.List(ctx); !errors.Is(err, fails) || listed != nil || len(all) != 1 {
		t.Errorf("after %v: %+v, %v", err, all, listed)
	}
}

func TestAnUnfinishedClaimIsForgotten(t *testing.T) {
	s, dir := open(t)
	if err := os.MkdirAll(filepath.Join(dir, "u1", "ports"), 0o700); err != nil {
		t.Fatal(err)
	}
	all, err := s.List(context.Background())
	if _, left := os.Stat(filepath.Join(dir, "u1")); err != nil || len(all) != 0 || !os.IsNotExist(left) {
		t.Errorf("%+v, %v, %v", all, err, left)
	}
}

func TestHostileUIDsAreRefused(t *testing.T) {
	s, _ := open(t)
	for _, uid := range []types.UID{"", "..", "a/b", ".", "a\x00b"} {
		c := claim("u1", "du")
		c.UID = uid
		if err := s.Add(context.Background(), c); err == nil {
			t.Errorf("claim %q was kept", uid)
		}
		if err := s.Remove(context.Background(), uid, none); err == nil {
			t.Errorf("claim %q was removed", uid)
		}
	}
}

// Two daemons at once: each claim is kept, and nobody waits beyond its time.
func TestTwoInstancesTakeTurns(t *testing.T) {
	a, dir := open(t)
	b, err := claims.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, s := range []*claims.Store{a, b} {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := range 20 {
				c := claim(string(rune('a'+i))+string(rune('a'+n)), "du")
				c.Ports[0].Chain = string(c.UID)
				if err := s.Add(context.Background(), c); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	err = a.Use(context.Background(), func(kept []claims.Claim) error {
		if len(kept) != 40 {
			t.Errorf("%d claims are kept, not 40", len(kept))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := b.List(ctx)
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for the lock: %v", err)
	}
}

// What is changed stays changed, also if the kubelet asks again.
func TestAClaimIsUpdated(t *testing.T) {
	s, _ := open(t)
	ctx := context.Background()
	du, cu := claim("u1", "du"), claim("u2", "cu-up")
	if err := errors.Join(s.Add(ctx, du), s.Add(ctx, cu)); err != nil {
		t.Fatal(err)
	}
	err := s.Update(ctx, func(c *claims.Claim) bool {
		c.Ports[0].Link.Transport = "bridge"
		return c.UID == du.UID
	})
	if err := errors.Join(err, s.Add(ctx, du)); err != nil {
		t.Fatal(err)
	}
	all, err := s.List(ctx)
	if err != nil || len(all) != 2 || all[0].Ports[0].Link.Transport != "bridge" || all[1].Ports[0].Link.Transport != "shm" {
		t.Errorf("%+v, %v", all, err)
	}
}
