// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/broker/wire"
)

// TestADueGenerationWakesTheLink holds where the pace gives one back between
// two looks at the clock: a link that slept for ever would never offer it.
func TestADueGenerationWakesTheLink(t *testing.T) {
	l := &link{broker: &broker{ledger: &ledger{}}, entry: entry{Link: Link{Kind: KindShm}}, pace: bucket{burst: 1, every: time.Hour}}
	for range 2 {
		l.ends = append(l.ends, &end{link: l, conn: &conn{welcomed: true}})
	}
	if l.next().IsZero() {
		t.Error("a generation is due, and nothing wakes the link")
	}
	// Both must have passed: waking for the first alone would turn in circles.
	l.retryAfter = time.Now().Add(-time.Second)
	l.pace.take(time.Now())
	if d := time.Until(l.next()); d < 30*time.Minute {
		t.Errorf("wakes in %v, when the pace allows nothing for an hour", d)
	}
	l.pace = bucket{burst: 1, every: time.Hour}
	l.retryAfter = time.Now().Add(time.Hour)
	if d := time.Until(l.next()); d < 30*time.Minute {
		t.Errorf("wakes in %v, to try again in an hour", d)
	}
}

// TestAMoveThatIsNotJournalledIsNone makes the journal refuse.
func TestAMoveThatIsNotJournalledIsNone(t *testing.T) {
	j, err := openJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(j.dir); err != nil {
		t.Fatal(err)
	}
	from := Link{Name: "f1u", Kind: KindShm}
	l := &link{broker: &broker{journal: j}, entry: entry{Link: from, Generation: 3, Inode: 7}, phase: phaseActive}
	to := from
	to.Kind = KindNetdev
	if err := l.relink(to); err == nil {
		t.Fatal("no error")
	}
	if !l.entry.Link.equal(&from) || l.entry.Inode != 7 || l.phase != phaseActive {
		t.Errorf("the link is %+v, phase %d", l.entry, l.phase)
	}
}

// TestActiveBeforeAnyOffer is what only an end that lies says.
func TestActiveBeforeAnyOffer(t *testing.T) {
	l := &link{entry: entry{Link: Link{Kind: KindNetdev}}}
	e := &end{link: l, conn: &conn{welcomed: true, hello: &wire.Hello{}}}
	l.ends = []*end{e}
	e.onActive(e.conn, 0)
	if e.conn.active {
		t.Error("an end without sockets counts as active")
	}
}

// TestASocketThatCannotBeBoundIsClosed: no file can be made in /proc.
func TestASocketThatCannotBeBoundIsClosed(t *testing.T) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	before := open()
	for range 5 {
		if _, _, err := listen("/proc/dray-test", 0); err == nil || errors.Is(err, unix.EBADF) {
			t.Fatalf("error %v", err)
		}
	}
	if after := open(); after >= before+5 {
		t.Errorf("%d descriptors are open, and were %d", after, before)
	}
}
