// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// sum sets the checksum of a header.
func sum(header []byte) {
	binary.LittleEndian.PutUint32(header[tagSum:], crc32.Checksum(header[:tagSum], castagnoli))
}

// packet is a packet of a stream behind so many bytes of headers.
func packet(headers int, stream uint32, number uint64, flags uint16) []byte {
	header := make([]byte, tagSize)
	le := binary.LittleEndian
	copy(header, tagMagic)
	header[tagVersion], header[tagType] = 1, typeData
	le.PutUint16(header[tagFlags:], flags)
	le.PutUint32(header[tagStream:], stream)
	le.PutUint64(header[tagNumber:], number)
	le.PutUint64(header[tagSent:], 7000)
	sum(header)
	return append(append(make([]byte, headers), header...), "padding"...)
}

func TestFind(t *testing.T) {
	want := tag{9, 1 << 40, 7000}
	for _, headers := range []int{0, 42, 86, headersAtMost} {
		if got, ok := find(packet(headers, 9, 1<<40, 0)); !ok || got != want {
			t.Errorf("behind %d bytes: %v, %v", headers, got, ok)
		}
	}
	for version, wanted := range map[byte]bool{0: false, 1: true, 2: true, 3: false} {
		p := packet(42, 9, 1<<40, 0)
		p[42+tagVersion] = version
		sum(p[42:])
		if got, ok := find(p); ok != wanted || ok && got != want {
			t.Errorf("version %d: %v, %v", version, got, ok)
		}
	}
	// The magic may be in other headers too.
	decoy := append([]byte("DGENDGEN"), packet(50, 9, 1<<40, 0)...)
	if got, ok := find(decoy); !ok || got != want {
		t.Errorf("behind a decoy: %v, %v", got, ok)
	}
	good := packet(42, 9, 3, 0)
	for name, p := range map[string][]byte{
		"warm-up": packet(42, 9, 3, flagWarmup), "nothing": nil, "no tag": make([]byte, 256), "cut off": good[:42+tagSize-1],
		"damaged":   append(bytes.Clone(good[:42+tagNumber]), append([]byte{99}, good[42+tagNumber+1:]...)...),
		"all magic": bytes.Repeat(tagMagic, 60),
	} {
		if got, ok := find(p); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSampling(t *testing.T) {
	for _, c := range []struct {
		rate float64
		want sampling
	}{{0, 1}, {10_000, 1}, {10_001, 2}, {40_000, 4}, {1e9, 128}} {
		if got := samplingOf(c.rate, 10_000); got != c.want {
			t.Errorf("%v per second: one of %d", c.rate, got)
		}
	}
}

// followed is a number of stream 9 that one of so many takes.
func followed(n sampling) uint64 {
	number := uint64(0)
	for !n.takes(9, number) {
		number++
	}
	return number
}

// Whatever the rhythm in which packets are lost, the followed ones show the same share. Another
// stream has other ones.
func TestSamplingHasNoRhythm(t *testing.T) {
	const all = 1 << 20
	for n := sampling(2); n < 128; n *= 2 {
		for period := uint64(1); period <= 256; period *= 2 {
			got := 0
			for number := uint64(0); number < all; number += period {
				if n.takes(9, number) {
					got++
				}
			}
			want := float64(all/period) / float64(n)
			if math.Abs(float64(got)-want) > 5*math.Sqrt(want) {
				t.Errorf("one of %d, of every %dth packet: %d, want %.0f", n, period, got, want)
			}
		}
	}
	same := 0
	for number := range uint64(1000) {
		if sampling(8).takes(9, number) && sampling(8).takes(10, number) {
			same++
		}
	}
	if same > 50 {
		t.Errorf("two streams: %d of the same 1000 numbers are followed", same)
	}
	if got := sampling(1).count(9, 5, 12); got != 7 {
		t.Errorf("of 7 packets %d are followed", got)
	}
}

// The kernel runs the filter as it does at a packet socket.
func TestFilter(t *testing.T) {
	const payload = tagSize + len("padding")
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	testenv.Must(t, err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	filter := sampling(4).filter(payload)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	testenv.Must(t, unix.SetsockoptSockFprog(pair[1], unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program))
	passes := func(p []byte) bool {
		_, err := unix.Write(pair[0], p)
		testenv.Must(t, err)
		n, err := unix.Read(pair[1], make([]byte, 2048))
		return err == nil && n > 0
	}
	for number := range uint64(600) {
		for _, headers := range []int{42, 86} {
			if got, want := passes(packet(headers, 9, number, 0)), sampling(4).takes(9, number); got != want {
				t.Fatalf("number %d behind %d bytes: %v, want %v", number, headers, got, want)
			}
		}
	}
	for name, p := range map[string][]byte{"short": {1, 2, 3}, "other": make([]byte, 200), "longer": append(packet(42, 9, followed(4), 0), 0)} {
		if passes(p) {
			t.Errorf("%s passes", name)
		}
	}
}
