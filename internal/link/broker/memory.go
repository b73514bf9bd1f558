// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker/wire"
)

// Seals. The size is fixed from the start. Once both ends have mapped the
// memory, nobody can punch holes or map it writable again.
const (
	sealsAtOnce    = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	sealsLive      = sealsAtOnce | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL
	sealsTelemetry = sealsAtOnce | unix.F_SEAL_SEAL
)

const (
	hugePage = 2 << 20 // bytes
	headroom = 128     // bytes before the data of a buffer
	// populateStep bounds how much one call faults in: a signal restarts the
	// call.
	populateStep = 64 << 20
)

// memory is the data memfd of one generation.
type memory struct {
	fd       int
	geometry wire.Geometry
	pages    string // as LinkStatus.Pages
	device   uint64
	inode    uint64
}

// geometryOf is the geometry of a link's memory with the given number of
// queues. Its size is for plain pages.
func geometryOf(l *Link, queues uint32, messages bool) (wire.Geometry, error) {
	frame := l.PacketBytes
	if frame == 0 {
		for _, e := range l.Ends {
			frame = max(frame, e.MTU+ethernetBytes)
		}
	}
	g := wire.Geometry{PageSize: wire.Page, Queues: queues, PktSlots: uint32(l.Slots), PktHeadroom: headroom, PktStride: stride(frame)}
	if l.Slots == 0 {
		g.PktSlots = DefaultSlots
	}
	// An odd number of cache lines spreads the headers over all cache sets.
	if g.PktStride/64%2 == 0 && g.PktStride < wire.PktStrideMax {
		g.PktStride += 64
	}
	if messages && l.MessageBytes > 0 {
		g.MsgSlots, g.MsgHeadroom, g.MsgStride = uint32(l.Messages), headroom, stride(l.MessageBytes)
		if l.Messages == 0 {
			g.MsgSlots = defaultMessages
		}
	}
	g.RingSize = wire.RingMin
	for g.RingSize < g.PktSlots+g.MsgSlots && g.RingSize < wire.RingMax {
		g.RingSize *= 2
	}
	o, err := g.Derive()
	if err != nil {
		return g, fmt.Errorf("link %s: the memory cannot hold %d packet slots of %d bytes and %d message slots of %d bytes: see PROTOCOL.md, section 3",
			l.Name, g.PktSlots, g.PktStride, g.MsgSlots, g.MsgStride)
	}
	if g.Size = o.Size; l.Machine {
		return deviceGeometry(l, g)
	}
	return g, nil
}

// deviceGeometry makes the size a power of two: a single page of the protocol.
func deviceGeometry(l *Link, g wire.Geometry) (wire.Geometry, error) {
	if g.Size > MachineMax {
		return g, fmt.Errorf("link %s: its memory takes %d MiB, and a virtual machine's device at most %d: give it fewer or smaller messages, or a smaller mtu",
			l.Name, g.Size>>20, MachineMax>>20)
	}
	for g.PageSize = wire.Page; uint64(g.PageSize) < g.Size; {
		g.PageSize *= 2
	}
	g.Size = uint64(g.PageSize)
	return g, nil
}

// Defaults of a Link.
const (
	ethernetBytes   = 18  // header and one VLAN tag
	DefaultSlots    = 512 // packets in flight per queue and direction
	defaultMessages = 8
)

func stride(payload int) uint32 { return uint32((headroom + payload + 63) / 64 * 64) }

// newMemory creates, populates and seals the memory of a generation, on the link's
// NUMA node. ENOMEM and ENOSPC mean too little memory.
func (l *Link) newMemory(g wire.Geometry) (m *memory, err error) {
	err = host.PreferNode(l.Node, func() error {
		m, err = newMemory(g, l.Pages)
		return err
	})
	return m, err
}

// newMemory does so anywhere. pages is one of Link.Pages.
func newMemory(g wire.Geometry, pages string) (*memory, error) {
	worthIt := pages == PagesAuto && g.Size >= hugePage
	if pages == PagesHuge || worthIt {
		huge := g
		huge.PageSize = hugePage
		o, err := huge.Derive()
		if err != nil {
			return nil, fmt.Errorf("huge pages: %w", err)
		}
		huge.Size = o.Size
		m, err := makeMemory(huge, unix.MFD_HUGETLB|unix.MFD_HUGE_2MB, false)
		if err == nil {
			m.pages = "huge 2M"
			return m, nil
		}
		if pages == PagesHuge {
			return nil, fmt.Errorf("%d huge pages of 2 MiB: %w (add to /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages)", huge.Size/hugePage, err)
		}
	}
	if err := enough(g.Size, host.MemoryAvailable); err != nil {
		return nil, err
	}
	advise := worthIt && thpForShmem()
	m, err := makeMemory(g, 0, advise)
	if err != nil {
		return nil, err
	}
	m.pages = "plain"
	if advise {
		m.pages = "thp"
	}
	return m, nil
}

// The kernel does not fail an allocation that is too large; it invokes the OOM killer.
const (
	largeMemory  = 64 << 20 // bytes: smaller sizes are not checked
	memoryMargin = 64 << 20 // bytes that the host needs in addition
)

// errNoRoom is returned if no memory has been allocated.
var errNoRoom = fmt.Errorf("not tried: %w", unix.ENOMEM)

// enough returns an error if the host has less than size bytes left. If the
// available memory is unknown, it does not refuse.
func enough(size uint64, available func() (uint64, error)) error {
	if size < largeMemory {
		return nil
	}
	if n, err := available(); err == nil && n < size+memoryMargin {
		return fmt.Errorf("the link's memory takes %d MiB, and the host has %d left: give it fewer or smaller slots or messages, or free memory: %w",
			size>>20, n>>20, errNoRoom)
	}
	return nil
}

// thpForShmem reports whether the kernel follows advice to use large pages for shared memory.
func thpForShmem() bool {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(b), "[")
	chosen, _, _ := strings.Cut(after, "]")
	return chosen != "" && chosen != "never" && chosen != "deny"
}

func makeMemory(g wire.Geometry, flags int, advise bool) (m *memory, err error) {
	fd, err := newMemfd("dray-link", int64(g.Size), flags)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if advise {
		err = populateAdvised(fd, int(g.Size))
	} else {
		err = populate(fd, int64(g.Size))
	}
	if err != nil {
		return nil, fmt.Errorf("fault in %d bytes: %w", g.Size, err)
	}
	if err := writeGeometry(fd, g, flags != 0); err != nil {
		return nil, fmt.Errorf("write the geometry: %w", err)
	}
	if err := addSeals(fd, sealsAtOnce); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	return &memory{fd: fd, geometry: g, device: st.Dev, inode: st.Ino}, nil
}

func newMemfd(name string, size int64, flags int) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC|flags)
	if err != nil {
		return -1, fmt.Errorf("memfd: %w", err)
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		return -1, errors.Join(fmt.Errorf("memfd of %d bytes: %w", size, err), unix.Close(fd))
	}
	return fd, nil
}

func addSeals(fd, seals int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	return nil
}

// populate faults in every page: a failure here would be a SIGBUS later.
func populate(fd int, size int64) error {
	for at := int64(0); at < size; {
		n := min(size-at, populateStep)
		switch err := unix.Fallocate(fd, 0, at, n); {
		case err == nil:
			at += n
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
	return nil
}

// populateAdvised populates through a mapping: only a mapping can request large pages.
func populateAdvised(fd, size int) error {
	mapping, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(mapping) }()
	if err := unix.Madvise(mapping, unix.MADV_HUGEPAGE); err != nil {
		return populate(fd, int64(size))
	}
	for {
		if err := unix.Madvise(mapping, unix.MADV_POPULATE_WRITE); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writeGeometry writes a copy to the first page, for tools.
func writeGeometry(fd int, g wire.Geometry, mapped bool) error {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, g); err != nil {
		return err
	}
	if !mapped {
		_, err := unix.Pwrite(fd, b.Bytes(), 0)
		return err
	}
	// Files of huge pages do not support write(2), only mapping.
	mapping, err := unix.Mmap(fd, 0, hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(mapping, b.Bytes())
	return unix.Munmap(mapping)
}

// presentedMemory is the memory that an end presents, if it can be a live
// link's: all seals, and a regular file. The caller still owns the descriptor.
func presentedMemory(fd int) (*memory, bool) {
	// First ask for the seals, which only shared memory has. On any other
	// file, even fstat may block if its owner wants that.
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&sealsLive != sealsLive {
		return nil, false
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size <= 0 {
		return nil, false
	}
	return &memory{fd: fd, geometry: wire.Geometry{Size: uint64(st.Size)}, device: st.Dev, inode: st.Ino}, true
}

// complete returns an error if an end has punched holes into memory that is now sealed: an
// honest end would pay for filling them, out of its own limit.
func (m *memory) complete() error {
	var st unix.Stat_t
	if err := unix.Fstat(m.fd, &st); err != nil {
		return err
	}
	if uint64(st.Blocks)*512 < m.geometry.Size {
		return errors.New("an end has released pages of the memory")
	}
	return nil
}

func (m *memory) close() {
	if m != nil {
		_ = unix.Close(m.fd)
	}
}
