// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Pty is a pseudo-terminal: a program reads from Slave what is written to Master.
type Pty struct{ Master, Slave *os.File }

// OpenPty opens one, with these columns and rows.
func OpenPty(columns, rows uint16) (*Pty, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	p := &Pty{Master: master}
	number := 0
	err = p.control(func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	})
	if err == nil {
		err = p.Resize(columns, rows)
	}
	if err == nil {
		p.Slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	return p, nil
}

// InForeground reports whether this process may change the terminal: it is our
// controlling one, with our group in the foreground. Else SIGTTOU stops us.
func InForeground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// Resize tells the programs in the terminal its new size.
func (p *Pty) Resize(columns, rows uint16) error {
	return p.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	})
}

// PassKeys makes the terminal pass keys to the programs as bytes: it neither shows nor
// collects them, and none is a signal.
func (p *Pty) PassKeys() error {
	return p.control(func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		t.Iflag &^= unix.BRKINT | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		return unix.IoctlSetTermios(fd, unix.TCSETS, t)
	})
}

// control uses Master without losing the deadlines of its reads.
func (p *Pty) control(f func(fd int) error) error {
	raw, err := p.Master.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}
