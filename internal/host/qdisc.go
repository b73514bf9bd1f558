// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host/step"
)

// Qdisc is a root egress queueing discipline. A zero field is the kernel's or the
// kind's default.
type Qdisc struct {
	Kind     string        // one of QdiscKinds
	Rate     uint64        // bit/s: tbf, htb, hfsc, netem
	Ceil     uint64        // bit/s: htb
	Burst    uint64        // bytes: tbf, htb
	Latency  time.Duration // tbf: the longest time in the queue; netem: the added delay
	Limit    int           // packets: pfifo, sfq, codel, fq_codel, netem; bytes: bfifo
	Target   time.Duration // codel, fq_codel
	Interval time.Duration // codel, fq_codel
	ECN      *bool         // codel, fq_codel; nil: the kernel's default
	Child    *Qdisc        // of tbf, htb and hfsc: the queue below it; nil: the kernel's FIFO
}

// QdiscState is a qdisc as the kernel reports it.
type QdiscState struct {
	Kind string
	Text string // parameters in tc's syntax
}

// QdiscKinds are the kinds SetQdisc supports.
func QdiscKinds() []string {
	return []string{"pfifo", "bfifo", "tbf", "htb", "hfsc", "sfq", "codel", "fq_codel", "netem"}
}

// KindQdisc is a root qdisc that SetQdisc attached.
const KindQdisc step.Kind = "qdisc"

// QdiscResource is an interface's root qdisc, if SetQdisc attached it. Only an
// interface that outlives the link needs it.
func QdiscResource(ns Netns, link string) step.Resource {
	return step.Resource{Kind: KindQdisc, Netns: ns.Path, Name: link}
}

// ownHandle marks the qdiscs that Drayage attaches; it never replaces or removes
// any other. The kernel assigns handles from 8000: on.
const ownHandle = "d7a:"

// ownClass is the only class of a classful qdisc; all traffic goes there. ownChild
// is its queue.
const (
	ownClass = ownHandle + "1"
	ownChild = "d7b:"
)

// SetQdisc makes q the root egress qdisc of an interface, replaces an earlier one
// of its own, and reads it back. It returns *Unsupported if the kernel lacks the
// kind. On error nothing is attached.
func (n Netns) SetQdisc(link string, q Qdisc) error {
	mtu, err := n.mtu(link)
	if err != nil {
		return err
	}
	q, err = q.complete(mtu)
	if err != nil {
		return err
	}
	if err := n.DelQdisc(link); err != nil {
		return err
	}
	for _, args := range q.tcArgs(link) {
		if err = n.tc(args...); err != nil {
			break
		}
	}
	if err == nil {
		err = n.checkQdisc(link, q)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("set qdisc of %s in %s: %w", link, n, err), n.DelQdisc(link))
	}
	return nil
}

// ReadQdisc reports the root qdisc of an interface.
func (n Netns) ReadQdisc(link string) (QdiscState, error) {
	root, err := n.rootQdisc(link)
	if err != nil {
		return QdiscState{}, err
	}
	text, err := n.qdiscText(link)
	return QdiscState{Kind: root.Kind, Text: text}, err
}

// DelQdisc removes the root qdisc that SetQdisc set, if any.
func (n Netns) DelQdisc(link string) error {
	root, err := n.rootQdisc(link)
	if err != nil {
		return err
	}
	if root.Handle != ownHandle {
		return nil
	}
	return n.tc("qdisc", "del", "dev", link, "root")
}

// ProbeQdisc tries a kind on a throw-away interface. It returns *Unsupported if the
// kernel lacks it.
func ProbeQdisc(kind string) error {
	return probeIn("qdisc "+kind, func(ns Netns) error {
		a, b := Iface{Netns: ns, Name: "p0", MTU: 1500}, Iface{Netns: ns, Name: "p1", MTU: 1500}
		if err := CreateVeth(a, b); err != nil {
			return err
		}
		return ns.SetQdisc(a.Name, Qdisc{Kind: kind, Rate: 1e6})
	})
}

// defaultLatency is tbf's default queueing limit.
const defaultLatency = 50 * time.Millisecond

// Check reports parameters that cannot work on an interface with that MTU.
func (q Qdisc) Check(mtu int) error {
	_, err := q.complete(mtu)
	return err
}

// complete checks the parameters and fills in the defaults for an interface
// with that MTU.
func (q Qdisc) complete(mtu int) (Qdisc, error) {
	switch q.Kind {
	case "pfifo", "bfifo", "sfq", "codel", "fq_codel", "netem":
		if q.Child != nil {
			return q, fmt.Errorf("qdisc %s takes no child; put it below a tbf, htb or hfsc", q.Kind)
		}
		return q, nil
	case "tbf", "htb", "hfsc":
	default:
		return q, fmt.Errorf("qdisc %q is not known; use one of %s", q.Kind, strings.Join(QdiscKinds(), ", "))
	}
	if q.Child != nil {
		child, err := q.Child.complete(mtu)
		if err != nil {
			return q, err
		}
		q.Child = &child
	}
	if q.Rate < 8 {
		return q, fmt.Errorf("qdisc %s needs a rate; give one, such as 100Mbps", q.Kind)
	}
	if q.Ceil == 0 {
		q.Ceil = q.Rate
	}
	if q.Ceil < q.Rate {
		return q, fmt.Errorf("qdisc %s: ceil %d bit/s is below rate %d bit/s; raise ceil or drop it", q.Kind, q.Ceil, q.Rate)
	}
	if q.Latency == 0 {
		q.Latency = defaultLatency
	}
	frame := uint64(mtu + EthernetHeader)
	if q.Burst == 0 {
		// 4 ms of the rate: enough for coarse timers, too short to affect a figure.
		q.Burst = max(q.Rate/8/250, 2*frame)
	}
	if q.Burst < frame {
		return q, fmt.Errorf("qdisc %s: burst of %d bytes is below one full frame; give at least %d", q.Kind, q.Burst, frame)
	}
	return q, nil
}

// EthernetHeader is the length of an untagged Ethernet header in bytes.
const EthernetHeader = 14

// tcArgs are the tc commands that attach a completed q and its child.
func (q Qdisc) tcArgs(link string) [][]string {
	all := q.rootArgs(link)
	if q.Child != nil {
		all = append(all, q.Child.limited([]string{"qdisc", "add", "dev", link, "parent", ownClass, "handle", ownChild, q.Child.Kind}))
	}
	return all
}

// limited appends the parameters of a queue that are set.
func (q Qdisc) limited(args []string) []string {
	if q.Limit > 0 {
		args = append(args, "limit", strconv.Itoa(q.Limit))
	}
	if q.Target > 0 {
		args = append(args, "target", micros(q.Target))
	}
	if q.Interval > 0 {
		args = append(args, "interval", micros(q.Interval))
	}
	switch {
	case q.ECN == nil:
	case *q.ECN:
		args = append(args, "ecn")
	default:
		args = append(args, "noecn")
	}
	return args
}

func (q Qdisc) rootArgs(link string) [][]string {
	add := []string{"qdisc", "add", "dev", link, "root", "handle", ownHandle, q.Kind}
	rate, burst := bits(q.Rate), strconv.FormatUint(q.Burst, 10)+"b"
	class := []string{"class", "add", "dev", link, "parent", ownHandle, "classid", ownClass, q.Kind}
	switch q.Kind {
	case "tbf":
		return [][]string{append(add, "rate", rate, "burst", burst, "latency", micros(q.Latency))}
	case "htb":
		return [][]string{
			append(add, "default", "1"),
			append(class, "rate", rate, "ceil", bits(q.Ceil), "burst", burst, "cburst", burst),
		}
	case "hfsc":
		return [][]string{append(add, "default", "1"), append(class, "sc", "rate", rate, "ul", "rate", rate)}
	case "netem":
		if q.Latency > 0 {
			add = append(add, "delay", micros(q.Latency))
		}
		if q.Rate > 0 {
			add = append(add, "rate", rate)
		}
	}
	return [][]string{q.limited(add)}
}

func bits(rate uint64) string { return strconv.FormatUint(rate, 10) + "bit" }

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) + "us" }

// removeQdisc removes the root qdisc of an interface that still exists.
func removeQdisc(r step.Resource) error {
	n := Netns{Path: r.Netns}
	if !n.Exists() {
		return nil
	}
	if exists, err := n.hasLink(r.Name); err != nil || !exists {
		return err
	}
	return n.DelQdisc(r.Name)
}
