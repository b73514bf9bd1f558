// SPDX-License-Identifier: Apache-2.0

package sriov_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/sriov"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// card is a network card of this host with a free VF; it skips the test if
// there is none.
func card(t *testing.T, least int) (name string, free int) {
	t.Helper()
	testenv.Root(t)
	testenv.Kernel(t, sriov.New().Probe(context.Background()))
	interfaces, err := host.Uplinks()
	testenv.Must(t, err)
	for _, i := range interfaces {
		if i.VFs > free && i.Up {
			name, free = i.Name, i.VFs
		}
	}
	if free < least {
		t.Skipf("of the network cards that are up, none has %d free virtual functions", least)
	}
	return name, free
}

func TestConformance(t *testing.T) {
	name, _ := card(t, 2)
	transporttest.RunVFs(t, sriov.New(), func() string { return describe(t, name) })
}

// entryMAC is a VF's address in its card's table. The tests do not compare it:
// a driver stores there the address that the VF chose once it is up.
var entryMAC = regexp.MustCompile(`(vf \d+ +link/ether) [0-9a-f:]+`)

// describe lists all properties of a card that a link may change.
func describe(t *testing.T, card string) string {
	t.Helper()
	var b strings.Builder
	table, err := exec.Command("ip", "link", "show", "dev", card).Output()
	testenv.Must(t, err)
	b.Write(entryMAC.ReplaceAll(table, []byte("$1")))
	names, err := filepath.Glob("/sys/class/net/" + card + "/device/virtfn*/net/*")
	testenv.Must(t, err)
	for _, name := range names {
		s, err := host.HostNetns.ReadLink(filepath.Base(name))
		testenv.Must(t, err)
		offloads, err := host.HostNetns.Offloads(filepath.Base(name))
		testenv.Must(t, err)
		fmt.Fprintf(&b, "%s: %s mtu %d up %v %v %s\n", name, s.MAC, s.MTU, s.Up, s.Addrs, offloads)
	}
	claims, err := filepath.Glob("/run/.dray-vfs/*:*")
	testenv.Must(t, err)
	fmt.Fprintln(&b, claims)
	return b.String()
}

// TestUplink takes all VFs of a named card at once, one link each, and one
// more: no VF is taken twice.
func TestUplink(t *testing.T) {
	name, free := card(t, 2)
	before := describe(t, name)
	specs := make([]transport.Spec, free+1)
	for i := range specs {
		r := transporttest.NewRig(t, sriov.New(), transporttest.Options{})
		s := r.Spec
		s.Ends = []transport.End{s.Ends[0], {Netns: host.HostNetns, Name: name, Uplink: true}}
		s.Ends[0].MAC = net.HardwareAddr{2, 0xda, 0, 1, 0, byte(i)}
		specs[i] = s
	}
	made := make([]journal, len(specs))
	errs := make(chan error, len(specs))
	for i, s := range specs {
		b, err := sriov.New().Build(s)
		testenv.Must(t, err)
		t.Cleanup(func() { made[i].remove(t) })
		go func() {
			runner := step.Runner{Journal: &made[i], Removers: host.Removers()}
			errs <- runner.Run(context.Background(), b.Steps)
		}()
	}
	refused := 0
	for range specs {
		if err := <-errs; err != nil {
			refused++
			if !errors.Is(err, host.ErrUnsupported) || !strings.Contains(err.Error(), "no VF: 1 are needed") {
				t.Error(err)
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d links, %d rejected, %d VFs", len(specs), refused, free)
	}
	if item := sriov.New().Probe(context.Background()); item.Status != inventory.Missing || !strings.Contains(item.Reason, "is the port f1u of another link") {
		t.Errorf("with all VFs taken: %+v", item)
	}
	for i := range made {
		made[i].remove(t)
	}
	if after := describe(t, name); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// journal is the list of resources that links may have left.
type journal []step.Resource

func (j *journal) Append(r ...step.Resource) error {
	*j = append(*j, r...)
	return nil
}

func (j *journal) remove(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	runner := step.Runner{Removers: host.Removers()}
	if err := runner.Remove(ctx, *j); err != nil {
		t.Error(err)
	}
}

// TestBuildRefuses needs no card.
func TestBuildRefuses(t *testing.T) {
	mac := func(i byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, i} }
	port := func(i byte) transport.End {
		return transport.End{Netns: host.Netns{Path: fmt.Sprintf("/nowhere%d", i)}, Name: "f1u", MAC: mac(i)}
	}
	base := transport.Spec{Link: "f1u", Dir: "/nowhere", MTU: 1500}
	for want, ends := range map[string][]transport.End{
		"add a second port or an uplink": {port(1)},
		"use one":                        {port(1), {Name: "eth0", Uplink: true}, {Name: "eth1", Uplink: true}},
		"is not an interface of the host's own network namespace": {port(1), {Name: "eth0", Uplink: true, Netns: host.Netns{Path: "/elsewhere"}}},
	} {
		s := base
		s.Ends = ends
		if _, err := sriov.New().Build(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestProbe: whatever this host has, the result names the fix.
func TestProbe(t *testing.T) {
	testenv.Root(t)
	if _, err := os.Stat("/sys/class/net"); err != nil {
		t.Skip(err)
	}
	item := sriov.New().Probe(context.Background())
	if item.Status == inventory.Missing && (item.Fix == "" || !strings.Contains(item.Reason, "VF") && !strings.Contains(item.Reason, "virtual function") && !strings.Contains(item.Reason, "is down")) {
		t.Errorf("%+v", item)
	}
}
