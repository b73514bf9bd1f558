// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFloodsCostABoundedNumberOfReads: whatever the sizes of reads are, their number and
// their bytes are bounded.
func TestFloodsCostABoundedNumberOfReads(t *testing.T) {
	const seconds = 100
	for _, size := range []int{1, 100, readCost, readSize} {
		var th throttle
		begin := time.Unix(1e9, 0)
		reads := 0
		for now := begin; now.Sub(begin) < seconds*time.Second; reads++ {
			now = now.Add(th.spend(now, size))
		}
		most := outputBurst + seconds*outputSecond
		if reads > most/readCost+1 || reads*size > most+size {
			t.Errorf("reads of %d bytes: %d in %d s", size, reads, seconds)
		}
		if reads < most/max(size, readCost)-1 {
			t.Errorf("reads of %d bytes: only %d in %d s", size, reads, seconds)
		}
	}
}

// TestModestOutputNeverWaits: a function that prints at the rate, with bursts, is read at once.
func TestModestOutputNeverWaits(t *testing.T) {
	var th throttle
	now := time.Unix(1e9, 0)
	for i := range 1000 {
		if pause := th.spend(now, outputSecond/10); pause > 0 {
			t.Fatalf("read %d waits %v", i, pause)
		}
		now = now.Add(100 * time.Millisecond)
	}
	now = now.Add(time.Minute)
	for read := 0; read < outputBurst; read += readSize {
		if pause := th.spend(now, readSize); pause > 0 {
			t.Fatalf("after %d bytes of a burst: %v", read, pause)
		}
	}
}

// testClock is a clock that goes on when it is waited for, up to a limit. Then it stops.
type testClock struct {
	mu      sync.Mutex
	full    int // a pipe's writing end: the clock goes on only if the pipe is full; 0: none
	at      time.Time
	limit   time.Time
	stopped chan struct{} // closed at the limit
}

func newTestClock(limit time.Duration) *testClock {
	at := time.Unix(1e9, 0)
	return &testClock{at: at, limit: at.Add(limit), stopped: make(chan struct{})}
}

func (c *testClock) clock() clock { return clock{c.now, c.after} }

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *testClock) after(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full > 0 {
		awaitFull(c.full)
	}
	passed := make(chan time.Time, 1)
	if c.at = c.at.Add(d); c.at.After(c.limit) {
		close(c.stopped)
		return passed
	}
	passed <- c.at
	return passed
}

// flooded is the log of a function that writes lines as fast as it can for some seconds
// of its reader's clock.
func flooded(t *testing.T, seconds int, flags int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.log")
	c := newTestClock(time.Duration(seconds) * time.Second)
	o, err := outputAt(path, c.clock())
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.full = int(o.write.Fd())
	c.mu.Unlock()
	if _, err := unix.FcntlInt(o.write.Fd(), unix.F_SETFL, flags); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(o.write, "%d\n", i); err != nil {
				return
			}
		}
	}()
	<-c.stopped
	close(o.stop)
	<-o.done
	o.read.Close() // the writer gets EPIPE
	<-ended
	o.write.Close()
	o.log.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// awaitFull waits until a pipe is full.
func awaitFull(write int) {
	for {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(write), Events: unix.POLLOUT}}, 0); n == 0 && err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestAFloodIsReadAtTheRate: the log says so and no line is missing.
func TestAFloodIsReadAtTheRate(t *testing.T) {
	const seconds = 1
	text := flooded(t, seconds, 0)
	if most := outputBurst + seconds*outputSecond + 2*readSize; len(text) > most {
		t.Errorf("%d bytes are in the log, more than %d", len(text), most)
	}
	if n := strings.Count(text, floodNote); n != 1 {
		t.Errorf("the log says %d times that the function was slowed down", n)
	}
	text = strings.Replace(text, floodNote, "", 1)
	lines := strings.Split(text[:strings.LastIndex(text, "\n")], "\n")
	for i, line := range lines {
		if line != fmt.Sprint(i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// TestAFloodOfPacketsIsReadAtTheRate: with O_DIRECT, a read returns one write.
func TestAFloodOfPacketsIsReadAtTheRate(t *testing.T) {
	const seconds = 3
	text := flooded(t, seconds, unix.O_DIRECT)
	if reads, most := strings.Count(text, "\n"), (outputBurst+seconds*outputSecond)/readCost+1; reads > most {
		t.Errorf("%d reads instead of %d", reads, most)
	}
}

// TestTheNoteIsALineOfItsOwn: also if a read ends within a line.
func TestTheNoteIsALineOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	o := &output{log: logger(path), clock: newTestClock(0).clock(), hurried: true}
	long := strings.Repeat("x", readSize/2)
	o.keep([]byte(long + "a")) // no end of a line
	o.keep([]byte("b\n" + long + "c"))
	o.keep([]byte("d\n" + long)) // too early for another note
	o.log.Close()
	text, err := os.ReadFile(path)
	if want := long + "ab\n" + floodNote + long + "cd\n" + long; err != nil || !bytes.Equal(text, []byte(want)) {
		t.Errorf("%d bytes in the log, not %d: %v", len(text), len(want), err)
	}
}
