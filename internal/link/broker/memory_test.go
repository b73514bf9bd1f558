// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// testLink is a link of two ports, with only the fields that its memory needs.
func testLink() Link {
	return Link{Name: "f1u", Kind: KindShm, Ends: []End{{MTU: 1500}, {MTU: 9000, Queues: 4}}}
}

func TestGeometryOfLink(t *testing.T) {
	for name, tc := range map[string]struct {
		change             func(*Link)
		messages           bool
		ring, slots        uint32
		stride, msgs, size uint32
	}{
		"defaults":             {func(*Link) {}, true, 512, 512, 9152, 0, 0},
		"packets of 64":        {func(l *Link) { l.PacketBytes = 64 }, true, 512, 512, 192, 0, 0},
		"even lines, made odd": {func(l *Link) { l.PacketBytes = 128 }, true, 512, 512, 320, 0, 0},
		"few slots":            {func(l *Link) { l.Slots = 33 }, true, 64, 33, 9152, 0, 0},
		"messages":             {func(l *Link) { l.MessageBytes = 4 << 20 }, true, 1024, 512, 9152, 8, 4<<20 + 128},
		"messages, not both":   {func(l *Link) { l.MessageBytes = 4 << 20 }, false, 512, 512, 9152, 0, 0},
		"two messages":         {func(l *Link) { l.MessageBytes, l.Messages = 1000, 2 }, true, 1024, 512, 9152, 2, 1152},
	} {
		t.Run(name, func(t *testing.T) {
			l := testLink()
			tc.change(&l)
			g, err := geometryOf(&l, 2, tc.messages)
			testenv.Must(t, err)
			if g.Queues != 2 || g.RingSize != tc.ring || g.PktSlots != tc.slots || g.PktStride != tc.stride || g.MsgSlots != tc.msgs || g.MsgStride != tc.size {
				t.Errorf("geometry is %+v", g)
			}
			if _, err := g.Check(); err != nil {
				t.Errorf("%+v: %v", g, err)
			}
		})
	}
	l := testLink()
	l.Slots = 31
	if _, err := geometryOf(&l, 1, true); err == nil {
		t.Error("31 slots are accepted")
	}
}

// hugePagesFree is the number of free, unreserved 2 MiB pages.
func hugePagesFree(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	testenv.Must(t, err)
	return n
}

func TestMemory(t *testing.T) {
	l := testLink()
	g, err := geometryOf(&l, 1, true)
	testenv.Must(t, err)
	for _, pages := range []string{PagesPlain, PagesAuto, PagesHuge} {
		t.Run(pages, func(t *testing.T) {
			if pages == PagesHuge {
				checkMissing(t, g)
				testenv.Root(t)
				testenv.HugePages(t, int(g.Size/hugePage)+1)
			}
			m, err := newMemory(g, pages)
			testenv.Must(t, err)
			defer m.close()
			checkMemory(t, m, g)
			if pages == PagesPlain && m.pages != "plain" || pages == PagesHuge && m.pages != "huge 2M" {
				t.Errorf("pages are %q", m.pages)
			}
		})
	}
}

// checkMissing asks for huge pages if there is none. Other programs may add some meanwhile.
func checkMissing(t *testing.T, g wire.Geometry) {
	t.Helper()
	if hugePagesFree(t) > 0 {
		return
	}
	m, err := newMemory(g, PagesHuge)
	m.close()
	if err != nil && !strings.Contains(err.Error(), "nr_hugepages") {
		t.Errorf("missing huge pages: %v", err)
	}
}

// checkMemory checks memory against PROTOCOL.md.
func checkMemory(t *testing.T, m *memory, asked wire.Geometry) {
	t.Helper()
	var st unix.Stat_t
	testenv.Must(t, unix.Fstat(m.fd, &st))
	if _, err := m.geometry.Check(); err != nil || uint64(st.Size) != m.geometry.Size || m.geometry.Size < asked.Size {
		t.Errorf("size is %d, geometry %+v: %v", st.Size, m.geometry, err)
	}
	if uint64(st.Blocks)*512 < m.geometry.Size {
		t.Errorf("%d of %d bytes are faulted in", st.Blocks*512, m.geometry.Size)
	}
	if seals, err := unix.FcntlInt(uintptr(m.fd), unix.F_GET_SEALS, 0); err != nil || seals != sealsAtOnce {
		t.Errorf("seals are %#x, %v", seals, err)
	}
	mapping, err := unix.Mmap(m.fd, 0, int(m.geometry.Size), unix.PROT_READ, unix.MAP_SHARED)
	testenv.Must(t, err)
	defer func() { _ = unix.Munmap(mapping) }()
	var copied wire.Geometry
	if _, err := binary.Decode(mapping[:unsafe.Sizeof(copied)], binary.LittleEndian, &copied); err != nil || copied != m.geometry {
		t.Errorf("the copy in the first page is %+v, not %+v", copied, m.geometry)
	}
}

// TestMemoryThatIsNotThere requests more memory than any host has.
func TestMemoryThatIsNotThere(t *testing.T) {
	for _, tc := range []struct {
		size, available uint64
		readable, want  bool
	}{
		{1 << 30, 1<<30 + memoryMargin, true, true},
		{1 << 30, 1<<30 + memoryMargin - 1, true, false},
		{largeMemory - 1, 0, true, true},
		{1 << 30, 0, false, true},
	} {
		err := enough(tc.size, func() (uint64, error) {
			if !tc.readable {
				return 0, os.ErrNotExist
			}
			return tc.available, nil
		})
		if (err == nil) != tc.want || err != nil && !errors.Is(err, unix.ENOMEM) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	_, err := newMemory(wire.Geometry{Size: 1 << 60}, PagesPlain)
	if !errors.Is(err, unix.ENOMEM) || !strings.Contains(err.Error(), "the host has") {
		t.Errorf("allocation of an exbibyte: %v", err)
	}
}

// TestMemoryOfMachine is a power of two bytes, in one page of the protocol; too much is refused.
func TestMemoryOfMachine(t *testing.T) {
	l := testLink()
	l.Machine = true
	g, err := geometryOf(&l, 1, true)
	if _, bad := g.Check(); err != nil || bad != nil || g.Size&(g.Size-1) != 0 || uint64(g.PageSize) != g.Size {
		t.Errorf("%+v, %v, %v", g, err, bad)
	}
	m, err := newMemory(g, l.Pages)
	testenv.Must(t, err)
	m.close()
	if m.pages != "plain" {
		t.Errorf("its pages are %s", m.pages)
	}
	l.MessageBytes, l.Messages = 4<<20, 100
	if _, err := geometryOf(&l, 1, true); err == nil || !strings.Contains(err.Error(), "256") {
		t.Errorf("error %v", err)
	}
}
