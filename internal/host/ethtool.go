// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ioctls that read and switch an interface's features, from
// include/uapi/linux/ethtool.h.

const (
	featureNames    = 4  // ETH_SS_FEATURES: the string set of the features' names
	featureNameSize = 32 // bytes of a name, ETH_GSTRING_LEN
)

// featureState is one interface feature's state.
type featureState struct {
	Active    bool
	Available bool // it can be switched, by more than the driver
}

// ethtoolRequest is struct ifreq with ifr_data.
type ethtoolRequest struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte // ifr_ifru is the longer union
}

// ethtool reads and switches an interface's features.
type ethtool struct {
	socket int
	link   string
	names  []string // of the features that the kernel knows, indexed by bit
}

// openEthtool opens an interface of the calling thread's network namespace.
func openEthtool(link string) (*ethtool, error) {
	if len(link) >= unix.IFNAMSIZ {
		return nil, unix.ENODEV
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	e := &ethtool{socket: fd, link: link}
	if e.names, err = e.readNames(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *ethtool) close() { _ = unix.Close(e.socket) }

// call passes the kernel a command in 32-bit words, and gets the answer in it.
func (e *ethtool) call(command []uint32) error {
	request := ethtoolRequest{data: unsafe.Pointer(&command[0])}
	copy(request.name[:], e.link)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(e.socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}

func (e *ethtool) readNames() ([]string, error) {
	// struct ethtool_sset_info: cmd, reserved, sset_mask (64 bits), data[1]
	count := make([]uint32, 5)
	count[0] = unix.ETHTOOL_GSSET_INFO
	binary.NativeEndian.PutUint64(bytesOf(count[2:4]), 1<<featureNames)
	if err := e.call(count); err != nil {
		return nil, err
	}
	// struct ethtool_gstrings: cmd, string_set, len, data[len*32]
	n := int(count[4])
	table := make([]uint32, 3+n*featureNameSize/4)
	table[0], table[1], table[2] = unix.ETHTOOL_GSTRINGS, featureNames, uint32(n)
	if err := e.call(table); err != nil {
		return nil, err
	}
	names := make([]string, min(n, int(table[2])))
	text := bytesOf(table[3:])
	for i := range names {
		names[i] = unix.ByteSliceToString(text[i*featureNameSize : (i+1)*featureNameSize])
	}
	return names, nil
}

// features reads all of the interface's features, by name.
func (e *ethtool) features() (map[string]featureState, error) {
	// struct ethtool_gfeatures: cmd, size, then for each 32 features one block of
	// available, requested, active, never_changed
	blocks := (len(e.names) + 31) / 32
	answer := make([]uint32, 2+4*blocks)
	answer[0], answer[1] = unix.ETHTOOL_GFEATURES, uint32(blocks)
	if err := e.call(answer); err != nil {
		return nil, err
	}
	states := make(map[string]featureState, len(e.names))
	for i, name := range e.names {
		block, bit := answer[2+4*(i/32):], uint32(1)<<(i%32)
		states[name] = featureState{Active: block[2]&bit != 0, Available: block[0]&^block[3]&bit != 0}
	}
	return states, nil
}

// change switches features, by name. The kernel may switch dependent features, and
// ignore forbidden changes.
func (e *ethtool) change(change map[string]bool) error {
	// struct ethtool_sfeatures: cmd, size, then for each 32 features one block of
	// valid, requested
	blocks := (len(e.names) + 31) / 32
	command := make([]uint32, 2+2*blocks)
	command[0], command[1] = unix.ETHTOOL_SFEATURES, uint32(blocks)
	for i, name := range e.names {
		on, valid := change[name]
		block, bit := command[2+2*(i/32):], uint32(1)<<(i%32)
		if valid {
			block[0] |= bit
		}
		if on {
			block[1] |= bit
		}
	}
	return e.call(command)
}

// bytesOf is the memory of words.
func bytesOf(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}
