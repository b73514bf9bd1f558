// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/step"
)

// KindVF is a network card's virtual function that became a port; its removal
// returns it to the host as it was.
const KindVF step.Kind = "vf"

// VFResource is the virtual function that became the port name in ns.
func VFResource(ns Netns, name string, mac net.HardwareAddr) step.Resource {
	return step.Resource{Kind: KindVF, Netns: ns.Path, Name: name, MAC: mac.String()}
}

// vfPool is the host's virtual functions, and the claims on them: one file each,
// named by PCI address. A claim is on disk before the function changes. All chains
// share one claims directory, whatever the state directory, because they share the
// functions.
type vfPool struct {
	sysfs  string // "/sys"
	claims string // a directory; it and its lock stay
	boot   string // BootID
}

// vfLockPatience bounds the wait for another process that takes or returns
// functions: both wait for drivers, at most vfPatience per step.
const vfLockPatience = time.Minute

// hostVFs is this host's pool.
func hostVFs() (vfPool, error) {
	boot, err := BootID()
	return vfPool{sysfs: "/sys", claims: "/run/.dray-vfs", boot: boot}, err
}

// vfClaim records a virtual function's port, and its previous state.
type vfClaim struct {
	Boot    string `json:"boot"`    // vfPool's; a reboot resets the function
	Address string `json:"address"` // on the PCI bus
	PF      string `json:"pf"`      // the physical function's interface
	VF      int    `json:"vf"`      // its number there

	Netns   string `json:"netns"` // the port, as in VFResource
	Port    string `json:"port"`
	PortMAC string `json:"port_mac"`

	Link     string          `json:"link"` // the former state
	MAC      string          `json:"mac"`
	MTU      int             `json:"mtu"`
	Offloads map[string]bool `json:"offloads"`  // by kernel feature
	AdminMAC string          `json:"admin_mac"` // set by the physical function
	Spoof    bool            `json:"spoof"`
	Trust    bool            `json:"trust"`
}

// is reports whether the claim belongs to a resource.
func (c vfClaim) is(r step.Resource) bool {
	return c.Netns == r.Netns && c.Port == r.Name && c.PortMAC == r.MAC
}

// lock keeps other processes from taking and returning functions.
func (p vfPool) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(p.claims, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, vfLockPatience)
	defer cancel()
	unlock, err = LockFile(ctx, filepath.Join(p.claims, "lock"), unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("lock the virtual functions of this host: %w", err)
	}
	return unlock, nil
}

// claimed are the claims of this boot, by PCI address. An unreadable claim counts,
// without an owner: its function must not be touched. A non-root user sees none,
// and can take none.
func (p vfPool) claimed() (map[string]vfClaim, error) {
	entries, err := os.ReadDir(p.claims)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[string]vfClaim{}
	for _, e := range entries {
		if !pciAddress.MatchString(e.Name()) {
			continue // the lock, or a killed writer's file
		}
		c := p.read(e.Name())
		if c.Boot == "" || c.Boot == p.boot {
			all[e.Name()] = c
		}
	}
	return all, nil
}

func (p vfPool) read(address string) vfClaim {
	var c vfClaim
	text, err := os.ReadFile(filepath.Join(p.claims, address))
	if err != nil || json.Unmarshal(text, &c) != nil || c.Address != address {
		return vfClaim{}
	}
	return c
}

// write makes a claim durable, atomically.
func (p vfPool) write(c vfClaim) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	path := filepath.Join(p.claims, c.Address)
	next := path + ".next"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// drop ends a claim.
func (p vfPool) drop(address string) error {
	err := os.Remove(filepath.Join(p.claims, address))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
