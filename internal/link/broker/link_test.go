// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// TestADueGenerationWakesTheLink: the pace frees a generation between two
// reads of the clock. A link that slept forever would never offer it.
func TestADueGenerationWakesTheLink(t *testing.T) {
	l := &link{broker: &broker{ledger: &ledger{}}, entry: entry{Link: Link{Kind: KindShm}},
		pace: bucket{burst: 1, every: time.Hour}, bytes: budget{burst: populateBurst, perSecond: populateRate}}
	for range 2 {
		l.ends = append(l.ends, &end{link: l, conn: &conn{welcomed: true}})
	}
	if l.next().IsZero() {
		t.Error("a generation is due, but nothing wakes the link")
	}
	// Both must have passed: waking for the first alone would be a busy loop.
	l.retryAfter = time.Now().Add(-time.Second)
	l.pace.take(time.Now())
	if d := time.Until(l.next()); d < 30*time.Minute {
		t.Errorf("wakes in %v, but the pace allows nothing for an hour", d)
	}
	l.pace = bucket{burst: 1, every: time.Hour}
	l.retryAfter = time.Now().Add(time.Hour)
	if d := time.Until(l.next()); d < 30*time.Minute {
		t.Errorf("wakes in %v, but the retry is in an hour", d)
	}
	l.retryAfter = time.Time{}
	l.bytes.spend(time.Now(), populateBurst+3600*populateRate)
	if d := time.Until(l.next()); d < 30*time.Minute {
		t.Errorf("wakes in %v, but the budget is exhausted for an hour", d)
	}
}

// TestGenerationsArePacedBySize connects and disconnects a peer: the bytes
// allocated depend only on time, not on the size of a generation.
func TestGenerationsArePacedBySize(t *testing.T) {
	const burst, perSecond = 100, 10
	for _, size := range []uint64{1, 60, 100, 400} {
		b := budget{burst: burst, perSecond: perSecond}
		start := time.Unix(1000, 0)
		var made uint64
		const seconds = 300
		for now := start; now.Before(start.Add(seconds * time.Second)); now = now.Add(20 * time.Millisecond) {
			if b.next(now).IsZero() {
				b.spend(now, size)
				made += size
			}
		}
		if most := uint64(burst + seconds*perSecond); made > most+size || made+size < most*9/10 {
			t.Errorf("generations of %d: %d were created, %d are allowed", size, made, most)
		}
		if due := b.next(start); !b.next(due).IsZero() {
			t.Errorf("generations of %d: due at %v, then at %v", size, due, b.next(due))
		}
	}
}

// TestAMoveThatIsNotJournalledIsNone makes writing the journal fail.
func TestAMoveThatIsNotJournalledIsNone(t *testing.T) {
	j, err := openJournal(t.TempDir())
	testenv.Must(t, err)
	testenv.Must(t, os.Remove(j.dir))
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

// TestAnUnfinishedEntryIsRemoved: a broker was killed while it wrote.
func TestAnUnfinishedEntryIsRemoved(t *testing.T) {
	dir := t.TempDir()
	j, err := openJournal(dir)
	testenv.Must(t, err)
	testenv.Must(t, j.save(&entry{Link: Link{Name: "f1u"}, Generation: 3}))
	testenv.Must(t, os.WriteFile(j.path("f1u")+".1"+host.Unfinished, []byte("{"), 0o600))
	j, err = openJournal(dir)
	testenv.Must(t, err)
	if files, err := os.ReadDir(j.dir); err != nil || len(files) != 1 || files[0].Name() != filepath.Base(j.path("f1u")) {
		t.Errorf("the journal has %v (%v)", files, err)
	}
}

// TestADamagedEntryIsReplacedOrRemoved, and no link waits for it.
func TestADamagedEntryIsReplacedOrRemoved(t *testing.T) {
	e := &entry{Link: Link{Name: "f1u", Kind: KindShm}, Generation: 3}
	for i, function := range []string{"a", "b"} {
		e.Link.Ends = append(e.Link.Ends, End{Function: function, Port: "p", Socket: "/run/" + function, MTU: 1500, MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}})
	}
	for name, damage := range testenv.Damages(`{"link":{"name":7}}`) {
		for _, suffix := range []string{"", host.Unfinished, damagedSuffix} {
			dir := t.TempDir()
			j, err := openJournal(dir)
			testenv.Must(t, err)
			damage(t, j.path("f1u")+suffix)
			if _, err := j.load("f1u"); err == nil || suffix == "" && errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: load: %v", name, err)
			}
			if n, err := j.generation("f1u"); n != 0 || err != nil {
				t.Errorf("%s: generation %d, %v", name, n, err)
			}
			if err := j.save(e); err != nil {
				t.Errorf("%s, %q: save: %v", name, suffix, err)
			}
			if n, err := j.generation("f1u"); n != 3 || err != nil {
				t.Errorf("%s, %q: generation %d, %v", name, suffix, n, err)
			}
			damage(t, j.path("f1u")+suffix)
			if _, err := openJournal(dir); err != nil {
				t.Errorf("%s, %q: open: %v", name, suffix, err)
			}
			if err := j.remove("f1u"); err != nil {
				t.Errorf("%s, %q: remove: %v", name, suffix, err)
			}
			if left, err := os.ReadDir(j.dir); err != nil || len(left) > 0 {
				t.Errorf("%s, %q: %v are left, %v", name, suffix, left, err)
			}
		}
	}
}

// TestActiveBeforeAnyOffer: only a dishonest end sends this.
func TestActiveBeforeAnyOffer(t *testing.T) {
	l := &link{entry: entry{Link: Link{Kind: KindNetdev}}}
	e := &end{link: l, conn: &conn{welcomed: true, hello: &wire.Hello{}}}
	l.ends = []*end{e}
	e.onActive(e.conn, 0)
	if e.conn.active {
		t.Error("an end without sockets counts as active")
	}
}

// TestASocketThatCannotBeBoundIsClosed: /proc does not allow new files.
func TestASocketThatCannotBeBoundIsClosed(t *testing.T) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		testenv.Must(t, err)
		return len(files)
	}
	before := open()
	for range 5 {
		if _, _, err := listen("/proc/dray-test", 0); err == nil || errors.Is(err, unix.EBADF) {
			t.Fatalf("error %v", err)
		}
	}
	if after := open(); after >= before+5 {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

// TestALargeGenerationHoldsTheNextUp allocates real memory; one generation
// uses up the link's budget.
func TestALargeGenerationHoldsTheNextUp(t *testing.T) {
	ledger := newLedger(&logger{w: io.Discard})
	t.Cleanup(ledger.close)
	p := pollerOf(t)
	l := &link{broker: &broker{ledger: ledger}, poller: p, pace: bucket{burst: 32, every: time.Millisecond}, bytes: budget{burst: 1, perSecond: 1},
		entry: entry{Link: Link{Name: "f1u", Kind: KindShm, Slots: 64}}}
	for i := range 2 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		testenv.Must(t, err)
		t.Cleanup(func() { closeAll(pair[:]) })
		l.entry.Link.Ends = append(l.entry.Link.Ends, End{Port: "f1u", MTU: 1500})
		l.ends = append(l.ends, &end{link: l, side: i, conn: &conn{welcomed: true, telemetry: -1, hello: new(wire.Hello), source: &source{fd: pair[0]}}})
	}
	now := time.Now()
	l.advance(now)
	if l.entry.Generation != 1 || l.phase != phaseOffered {
		t.Fatalf("generation %d, phase %d: %s", l.entry.Generation, l.phase, l.lastError)
	}
	l.endGeneration(wire.RebindDied, wire.KindNone)
	l.advance(now.Add(time.Minute))
	if l.entry.Generation != 1 {
		t.Error("a generation follows before the budget allows it")
	}
	l.advance(l.bytes.paid)
	if l.entry.Generation != 2 {
		t.Error("no generation follows although the budget allows it")
	}
	l.memory.close()
}

// TestAnEndOfADeviceThatDies has no peer to notify, and is still counted.
func TestAnEndOfADeviceThatDies(t *testing.T) {
	l := &link{poller: pollerOf(t), entry: entry{Link: Link{Kind: KindNetdev, Ends: []End{{Port: "n3"}}}}}
	e := &end{link: l}
	l.ends = []*end{e}
	for _, offered := range []uint32{0, 1, 2} { // the first had no sockets yet
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pair[1])
		s, err := l.poller.add(pair[0], false, func() {})
		if err != nil {
			t.Fatal(err)
		}
		e.conn = &conn{welcomed: true, offered: offered, telemetry: -1, source: s}
		l.endGone(e)
	}
	if l.rebinds != 2 {
		t.Errorf("%d generations have ended, not 2", l.rebinds)
	}
}

func pollerOf(t *testing.T) *poller {
	t.Helper()
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	return p
}
