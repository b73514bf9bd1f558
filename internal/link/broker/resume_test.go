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
