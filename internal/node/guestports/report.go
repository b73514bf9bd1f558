// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// report is the telemetry memory of a program in the guest.
type report struct {
	file *os.File
	last []byte // what the host has
}

// begin makes the memory that WELCOME brings. The descriptor is the caller's.
func (r *report) begin(w *wire.Welcome) ([]int, error) {
	r.close()
	fd, err := unix.MemfdCreate("dray-telemetry", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	size := int64(w.TelemetrySize)
	shift := binary.LittleEndian.AppendUint32(nil, w.SampleShift)
	err = errors.Join(unix.Ftruncate(fd, size), unix.Fallocate(fd, 0, 0, size))
	if err == nil {
		_, err = unix.Pwrite(fd, shift, wire.SampleShiftOffset)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	own := -1
	if err == nil {
		own, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	r.file = os.NewFile(uintptr(own), "telemetry")
	return []int{fd}, nil
}

// changed reads the memory; ok is false if the host has the same.
func (r *report) changed() (data []byte, ok bool) {
	info, err := r.file.Stat()
	if err != nil {
		return nil, false // no program
	}
	data = make([]byte, info.Size())
	if _, err := r.file.ReadAt(data, 0); err != nil || bytes.Equal(data, r.last) {
		return nil, false
	}
	r.last = data
	return data, true
}

func (r *report) close() {
	r.file.Close() // Close of a nil file only returns an error
	*r = report{}
}

// sendReport sends the program's telemetry to the host, if it has changed. The lock is held.
func (p *insidePort) sendReport() {
	if data, ok := p.report.changed(); ok {
		_ = p.out.send(frame{Kind: telemetry, Port: p.index, Data: data}) // a broken stream shows when it is read
	}
}
