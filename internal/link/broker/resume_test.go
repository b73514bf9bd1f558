// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// TestALinkThatCannotBeServedYet: the broker serves it as soon as it can,
// unless the link has been removed.
func TestALinkThatCannotBeServedYet(t *testing.T) {
	s := newFixture(t)
	c, stop := s.serve()
	l, gone := s.link("f1u"), s.link("gone")
	s.add(c, l)
	s.add(c, gone)
	stop()
	ports, away := filepath.Dir(l.Ends[1].Socket), filepath.Join(s.dir, "away")
	testenv.Must(t, os.Rename(ports, away))
	c, _ = s.serve()
	if all, err := c.Status(context.Background()); err != nil || len(all) != 0 {
		t.Fatalf("served without a directory: %+v, %v", all, err)
	}
	testenv.Must(t, c.Remove(context.Background(), "gone"))
	testenv.Must(t, os.Rename(away, ports))
	until(t, "served again", func() bool {
		all, err := c.Status(context.Background())
		return err == nil && len(all) == 1 && all[0].Name == "f1u"
	})
	s.healthy(l)
	if n := strings.Count(s.log.String(), "f1u: "); n != 1 {
		t.Errorf("logged %d times:\n%s", n, s.log)
	}
	if _, err := os.Stat(filepath.Join(s.state(), "links", "link-gone.json")); !os.IsNotExist(err) {
		t.Errorf("the removed link is still in the journal: %v", err)
	}
}

// TestADamagedFileStopsNoBroker, whatever is in the place of its socket and its lock. A damaged
// entry is set aside, even if nothing asks for its link any more.
func TestADamagedFileStopsNoBroker(t *testing.T) {
	ctx := context.Background()
	s := newFixture(t)
	l := s.link("f1u")
	entry := filepath.Join("links", "link-f1u.json")
	for _, file := range []string{"control", "lock", entry} {
		for name, damage := range testenv.Damages(`{"link":{"name":7}}`) {
			c, stop := s.serve()
			s.add(c, l)
			stop()
			damage(t, filepath.Join(s.state(), file))
			c, stop = s.serve()
			all, err := c.Status(ctx)
			if err != nil || (len(all) == 0) != (file == entry) {
				t.Errorf("%s is %s: %+v, %v", file, name, all, err)
			}
			_, lost := os.Lstat(filepath.Join(s.state(), entry))
			if _, err := os.Lstat(filepath.Join(s.state(), entry+".damaged")); file == entry && (err != nil || !os.IsNotExist(lost)) {
				t.Errorf("%s is %s: it is not set aside: %v, %v", file, name, err, lost)
			}
			s.add(c, l)
			testenv.Must(t, c.Remove(ctx, "f1u"))
			if left, err := os.ReadDir(filepath.Join(s.state(), "links")); err != nil || len(left) > 0 {
				t.Errorf("%s is %s: %v are left, %v", file, name, left, err)
			}
			stop()
		}
	}
}

// TestAnEntryThatCannotBeReadNow is kept, and its link served later with its number.
func TestAnEntryThatCannotBeReadNow(t *testing.T) {
	s := newFixture(t)
	c, stop := s.serve()
	l := s.link("f1u")
	s.add(c, l)
	stop()
	end := testenv.Unreadable(t, filepath.Join(s.state(), "links", "link-f1u.json"))
	c, _ = s.serve()
	if err := c.Add(context.Background(), l); err == nil {
		t.Error("its number is taken for 0")
	}
	end()
	until(t, "served again", func() bool {
		all, err := c.Status(context.Background())
		return err == nil && len(all) == 1
	})
}
