// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/inventory"
)

// ErrUnsupported matches every *Unsupported error.
var ErrUnsupported = errors.New("unsupported on this host")

// Unsupported says that this host lacks something: what fails, why, and the package
// or setting that fixes it. Any other error of a probe means that the probe itself
// failed and the answer is unknown.
type Unsupported struct {
	What string // "qdisc hfsc"
	Why  string // one clause: "this kernel has no sch_hfsc"
	Fix  string // may be empty
	// Cause is the kernel's answer, if there was one.
	Cause error
}

func (u *Unsupported) Error() string {
	s := u.What + ": unsupported: " + u.Why
	if u.Fix != "" {
		s += " (" + u.Fix + ")"
	}
	return s
}

func (u *Unsupported) Unwrap() error { return u.Cause }

// Is makes errors.Is(err, ErrUnsupported) true.
func (u *Unsupported) Is(target error) bool { return target == ErrUnsupported }

// ProbeItem turns a probe's result into an inventory item.
func ProbeItem(name string, err error) inventory.Item {
	item := inventory.Item{Name: name, Status: inventory.OK}
	if err == nil {
		return item
	}
	if os.Geteuid() != 0 && refused(err) {
		return inventory.NotTried(name)
	}
	var u *Unsupported
	if errors.As(err, &u) {
		item.Status, item.Reason, item.Fix = inventory.Missing, u.Why, u.Fix
		return item
	}
	fault := FaultOf(err)
	item.Status, item.Reason, item.Fix = inventory.Unknown, fault.Why, fault.Fix
	var helper *HelperError
	if errors.As(err, &helper) {
		item.Reason = helper.why()
	}
	if item.Fix == "" && refused(err) {
		item.Fix = "run as root"
	}
	return item
}

// refused reports whether the kernel refused something for lack of privilege.
func refused(err error) bool { return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) }
