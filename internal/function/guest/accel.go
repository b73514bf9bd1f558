// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// kvmTimeout is how long a guest may take to boot with KVM. Working KVM takes one
// or two seconds; otherwise a kernel may hang forever.
const kvmTimeout = 20 * time.Second

// accelVariable forces an accelerator: "kvm" or "tcg".
const accelVariable = "DRAY_GUEST_ACCEL"

// Accelerator is the best accelerator that has booted a guest of that kernel here.
// A device /dev/kvm proves nothing: once after each boot of this host, one guest is
// booted with it and the outcome is kept.
func Accelerator(ctx context.Context, k Kernel) (Accel, error) {
	switch forced := Accel(os.Getenv(accelVariable)); forced {
	case KVM, TCG:
		return forced, nil
	case "":
	default:
		return "", errors.New(accelVariable + ": write kvm or tcg")
	}
	if unix.Access("/dev/kvm", unix.R_OK|unix.W_OK) != nil {
		return TCG, nil
	}
	boot, err := host.BootID()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cacheDir(), 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(cacheDir(), "accel-"+k.Version)
	unlock, err := host.LockFile(ctx, file+".lock", unix.LOCK_EX)
	if err != nil {
		return "", err
	}
	defer unlock()
	if text, err := os.ReadFile(file); err == nil {
		if known, ok := strings.CutPrefix(string(text), boot+" "); ok && (Accel(known) == KVM || Accel(known) == TCG) {
			return Accel(known), nil
		}
	}
	found, err := tryKVM(ctx, k)
	if err != nil {
		return "", err
	}
	return found, os.WriteFile(file, []byte(boot+" "+string(found)), 0o644)
}

// tryKVM boots a guest with KVM. An error means that the result is unknown.
func tryKVM(ctx context.Context, k Kernel) (Accel, error) {
	dir, err := os.MkdirTemp("", "dray-kvm-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	c := Config{Name: "dray-kvm-probe", Dir: dir, VCPUs: 1, Memory: 256 << 20}
	m, err := c.boot(ctx, k, KVM, kvmTimeout)
	switch {
	case err == nil:
		m.Kill()
		return KVM, nil
	case ctx.Err() != nil, errors.Is(err, host.ErrUnsupported):
		return "", err
	}
	// A boot that also fails without KVM says nothing about KVM.
	if m, err = c.boot(ctx, k, TCG, bootTimeout); err != nil {
		return "", err
	}
	m.Kill()
	return TCG, nil
}
