// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// file writes a small capture.
func file(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, "dray test", Interface{Name: "f1u", Description: "du.f1u", Snaplen: 100})
	testenv.Must(t, err)
	frame := ethernet("10.0.0.1 > 10.0.0.2")
	err = errors.Join(
		w.Packet(Packet{Time: 1_700_000_000_123_456_789, Length: len(frame), Data: frame, Sent: true, Queue: 3}),
		w.Packet(Packet{Time: 1_700_000_000_123_456_790, Length: 900, Data: frame[:41]}),
		w.Statistics(Result{Packets: 2, Counts: Counts{Dropped: 7}, Start: time.Unix(1_700_000_000, 1), End: time.Unix(1_700_000_001, 2)}),
		w.Flush())
	testenv.Must(t, err)
	return out.Bytes()
}

// ethernet is a frame with a UDP datagram from port 1000 to port 2000.
func ethernet(payload string) []byte {
	b, _ := hex.DecodeString("020000000002" + "020000000001" + "0800" + "4500002f000000004011660b0a0000010a00000203e807d0" + "001b0000")
	return append(b, payload...)
}

// block is one block of a pcapng file, as these tests check it.
type block struct {
	kind uint32
	body []byte
}

// blocks splits a file, and checks each block's lengths.
func blocks(t *testing.T, b []byte) []block {
	t.Helper()
	var all []block
	le := binary.LittleEndian
	for len(b) > 0 {
		length := le.Uint32(b[4:])
		if length%4 != 0 || length < 12 || int(length) > len(b) || le.Uint32(b[length-4:]) != length {
			t.Fatalf("block %d of %d bytes in %d", le.Uint32(b), length, len(b))
		}
		all = append(all, block{le.Uint32(b), b[8 : length-4]})
		b = b[length:]
	}
	return all
}

// options reads the options after the fixed part of a block.
func options(t *testing.T, b []byte) map[uint16][]byte {
	t.Helper()
	all := map[uint16][]byte{}
	for {
		code, length := binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:])
		if code == 0 {
			if length != 0 || len(b) != 4 {
				t.Fatalf("%d bytes at the end of options", len(b))
			}
			return all
		}
		all[code] = b[4 : 4+length]
		b = b[4+(length+3)/4*4:]
	}
}

func TestWriter(t *testing.T) {
	all := blocks(t, file(t))
	var kinds []uint32
	for _, b := range all {
		kinds = append(kinds, b.kind)
	}
	if len(all) != 5 || kinds[0] != 0x0a0d0d0a || kinds[1] != 1 || kinds[2] != 6 || kinds[3] != 6 || kinds[4] != 5 {
		t.Fatalf("blocks %x", kinds)
	}
	if o := options(t, all[1].body[8:]); string(o[2]) != "f1u" || string(o[3]) != "du.f1u" || o[9][0] != 9 {
		t.Errorf("interface %q", o)
	}
	le := binary.LittleEndian
	first, second, end := all[2].body, all[3].body, all[4].body
	if ns := uint64(le.Uint32(first[4:]))<<32 | uint64(le.Uint32(first[8:])); ns != 1_700_000_000_123_456_789 {
		t.Errorf("time %d", ns)
	}
	if o := options(t, first[20+64:]); le.Uint32(o[2]) != 2 || le.Uint32(o[6]) != 3 {
		t.Errorf("options of the packet sent by queue 3: %v", o)
	}
	if o := options(t, second[20+44:]); le.Uint32(second[12:]) != 41 || le.Uint32(second[16:]) != 900 || le.Uint32(o[2]) != 1 {
		t.Errorf("received, truncated packet: % x", second)
	}
	if o := options(t, end[12:]); le.Uint64(o[4]) != 9 || le.Uint64(o[5]) != 7 || len(o[2]) != 8 || len(o[3]) != 8 {
		t.Errorf("statistics %v", o)
	}
}

// TestTcpdumpReadsIt: another program reads the file as intended.
func TestTcpdumpReadsIt(t *testing.T) {
	testenv.Program(t, "tcpdump")
	cmd := exec.Command("tcpdump", "-r", "-", "-n", "-tt", "--nano")
	cmd.Stdin = bytes.NewReader(file(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tcpdump: %v\n%s", err, out)
	}
	for _, want := range []string{"1700000000.123456789 IP 10.0.0.1.1000 > 10.0.0.2.2000: UDP, length 19", "1700000000.123456790 IP"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("tcpdump does not print %q:\n%s", want, out)
		}
	}
}

// fake is a source of n packets, each of one byte.
type fake struct {
	n, batch int
	counts   Counts
	err      error
}

func (f *fake) Read(take func(Packet) error) error {
	for i := 0; i < f.batch && f.n > 0; i++ {
		f.n--
		if err := take(Packet{Length: 1, Data: []byte{1}}); err != nil {
			return err
		}
	}
	return f.err
}
func (f *fake) Wait(d time.Duration) error { time.Sleep(time.Millisecond); return nil }
func (f *fake) Counts() Counts             { return f.counts }

// failing is a writer that fails after n bytes.
type failing struct{ n int }

func (f *failing) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, syscall.EPIPE
	}
	return len(b), nil
}

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		source *fake
		limits Limits
		want   uint64
		err    error
	}{
		"count":    {&fake{n: 100, batch: 9}, Limits{Packets: 10}, 10, nil},
		"duration": {&fake{n: 25, batch: 25}, Limits{Duration: 50 * time.Millisecond}, 25, nil},
		"ended":    {&fake{n: 3, batch: 9, err: ErrEnded}, Limits{}, 3, nil},
		"error":    {&fake{n: 3, batch: 9, err: broken}, Limits{}, 3, broken},
	} {
		var out bytes.Buffer
		w, err := NewWriter(&out, "", Interface{})
		testenv.Must(t, err)
		r, err := Run(context.Background(), c.source, w, c.limits)
		if r.Packets != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d packets, %v", name, r.Packets, err)
		}
		all := blocks(t, out.Bytes())
		if len(all) != int(c.want)+3 || all[len(all)-1].kind != 5 {
			t.Errorf("%s: %d blocks", name, len(all))
		}
	}
}

func TestRunEndsWithItsReader(t *testing.T) {
	w, err := NewWriter(&failing{n: 1000}, "", Interface{})
	testenv.Must(t, err)
	if _, err := Run(context.Background(), &fake{n: 1 << 40, batch: 1000}, w, Limits{}); err != nil {
		t.Errorf("error %v; a reader that leaves is none", err)
	}
}
