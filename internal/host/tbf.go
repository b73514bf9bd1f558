// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// ownMajor is the number of ownHandle.
const ownMajor = 0xd7a

// SetTokenBucket makes a tbf without a queue below it the root egress qdisc of an interface. It does what
// SetQdisc does, by netlink, for programs in containers without tc. One of the same parameters stays as it
// is, with the packets in it.
func (n Netns) SetTokenBucket(link string, q Qdisc) error {
	if q.Kind != "tbf" || q.Child != nil {
		return &Unsupported{What: "qdisc " + q.Kind, Why: "without tc, only a tbf without another queue can be set", Fix: "use max_bitrate, or a tbf alone"}
	}
	mtu, err := n.mtu(link)
	if err != nil {
		return err
	}
	if q, err = q.complete(mtu); err != nil {
		return err
	}
	err = n.withLink(link, func(nl *netlink.Handle, l netlink.Link) error { return setTokenBucket(nl, l, q) })
	if err != nil {
		return fmt.Errorf("set qdisc of %s in %s: %w", link, n, err)
	}
	return nil
}

func setTokenBucket(nl *netlink.Handle, l netlink.Link, q Qdisc) error {
	want, err := tokenBucket(l, q)
	if err != nil {
		return err
	}
	there, err := ownTokenBucket(nl, l)
	if err != nil || there != nil && sameBucket(there, want) {
		return err
	}
	change := nl.QdiscAdd // which replaces no other
	if there != nil {
		change = nl.QdiscChange
	}
	if err := change(want); errors.Is(err, syscall.ENOENT) {
		return &Unsupported{What: "qdisc tbf", Why: "this kernel has no sch_tbf", Fix: "needs CONFIG_NET_SCH_TBF; Debian's package linux-image-amd64 has it"}
	} else if err != nil {
		return err
	}
	there, err = ownTokenBucket(nl, l)
	if err == nil && (there == nil || !sameBucket(there, want)) {
		err = fmt.Errorf("read back: the kernel has %+v, not %+v", there, want)
	}
	return err
}

// tokenBucket is a completed tbf as netlink has it: the burst is the time that it takes at the rate.
func tokenBucket(l netlink.Link, q Qdisc) (*netlink.Tbf, error) {
	rate := q.Rate / 8
	if seconds := float64(q.Burst) / float64(rate); seconds > math.MaxUint32/1e9*64 {
		return nil, fmt.Errorf("a burst of %d bytes takes %.0f s at %d bit/s, more than the kernel can count: lower it", q.Burst, seconds, q.Rate)
	}
	limit := float64(rate)*q.Latency.Seconds() + float64(q.Burst)
	return &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(ownMajor, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       rate, Buffer: netlink.Xmittime(rate, uint32(q.Burst)), Limit: uint32(min(limit, math.MaxUint32)),
	}, nil
}

// ownTokenBucket is the tbf that Drayage has set on an interface; nil if there is none.
func ownTokenBucket(nl *netlink.Handle, l netlink.Link) (*netlink.Tbf, error) {
	all, err := dump(func() ([]netlink.Qdisc, error) { return nl.QdiscList(l) })
	if err != nil {
		return nil, err
	}
	for _, q := range all {
		if tbf, ok := q.(*netlink.Tbf); ok && tbf.Parent == netlink.HANDLE_ROOT && tbf.Handle == netlink.MakeHandle(ownMajor, 0) {
			return tbf, nil
		}
	}
	return nil, nil
}

// sameBucket reports whether the kernel has what is wanted. It keeps the burst in nanoseconds.
func sameBucket(got, want *netlink.Tbf) bool {
	return got.Rate == want.Rate && got.Limit == want.Limit && near(uint64(got.Buffer), uint64(want.Buffer))
}

// ProbeTokenBucket tries SetTokenBucket on a throw-away interface. It returns *Unsupported if the kernel lacks it.
func ProbeTokenBucket() error {
	return probeIn("token bucket", func(ns Netns) error {
		a, b := Iface{Netns: ns, Name: "p0", MTU: 1500}, Iface{Netns: ns, Name: "p1", MTU: 1500}
		if err := CreateVeth(a, b); err != nil {
			return err
		}
		return ns.SetTokenBucket(a.Name, Qdisc{Kind: "tbf", Rate: 1e6, Latency: time.Millisecond})
	})
}
