// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// tc runs tc inside the namespace. The netlink library supports only some qdiscs,
// so tc sets all of them.
func (n Netns) tc(args ...string) error {
	_, err := n.tcOutput(args...)
	return err
}

func (n Netns) tcOutput(args ...string) ([]byte, error) {
	answer, err := Helper{Program: "tc", Args: args, Package: "iproute2", Place: Place{Netns: n}}.Run(context.Background())
	if err != nil {
		return nil, tcError(args, answer.Err, err)
	}
	return []byte(answer.Out), nil
}

// tcError turns the kernel's error for an unknown kind into a typed one.
func tcError(args []string, stderr string, err error) error {
	if args[0] == "qdisc" && args[1] == "add" && unknownKind(stderr) {
		kind := args[slices.Index(args, "handle")+2]
		module := schedulerModule(kind)
		return &Unsupported{
			What: "qdisc " + kind,
			Why:  "this kernel has no " + module,
			Fix:  "needs CONFIG_NET_" + strings.ToUpper(module) + "; Debian's package linux-image-amd64 has it",
		}
	}
	return err
}

// unknownKind reports whether tc says that the kernel, or tc itself, lacks a qdisc, a classifier or
// an action.
func unknownKind(said string) bool {
	for _, text := range []string{
		"qdisc kind is unknown", "TC classifier not found", "Failed to load TC action module", // extended acknowledgements
		"Unknown qdisc", "Unknown filter", // tc's own
		"RTNETLINK answers: No such file or directory",
	} {
		if strings.Contains(said, text) {
			return true
		}
	}
	return false
}

// schedulerModule is the kernel module of a qdisc.
func schedulerModule(kind string) string {
	if kind == "pfifo" || kind == "bfifo" {
		return "sch_fifo"
	}
	return "sch_" + kind
}

// tcQdisc is one element of `tc -j qdisc show`.
type tcQdisc struct {
	Kind    string `json:"kind"`
	Handle  string `json:"handle"`
	Root    bool   `json:"root"`
	Parent  string `json:"parent"` // class
	Options struct {
		Rate  json.RawMessage `json:"rate"` // tbf: a number of bytes/s; netem: an object
		Burst uint64          `json:"burst"`
		Lat   uint64          `json:"lat"` // µs
		Limit int             `json:"limit"`
		// codel, fq_codel: µs, and whether they mark
		Target   uint64 `json:"target"`
		Interval uint64 `json:"interval"`
		ECN      bool   `json:"ecn"`
		Delay    struct {
			Delay float64 `json:"delay"` // s
		} `json:"delay"`
	} `json:"options"`
}

func (n Netns) qdiscs(link string) ([]tcQdisc, error) {
	out, err := n.tcOutput("-j", "qdisc", "show", "dev", link)
	if err != nil {
		return nil, err
	}
	return parseQdiscs(out)
}

func (n Netns) rootQdisc(link string) (tcQdisc, error) {
	all, err := n.qdiscs(link)
	return rootOf(all), err
}

// hfscOptions is text that iproute2 (seen: 6.1) prints inside its JSON.
var hfscOptions = regexp.MustCompile(`"options":\{default [0-9a-fx]+ *\}`)

func parseQdiscs(out []byte) ([]tcQdisc, error) {
	out = hfscOptions.ReplaceAll(out, []byte(`"options":{}`))
	var all []tcQdisc
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("output of tc -j qdisc show: %w", err)
	}
	return all, nil
}

func rootOf(all []tcQdisc) tcQdisc {
	for _, q := range all {
		if q.Root {
			return q
		}
	}
	return tcQdisc{Kind: "noop"} // an interface that is down shows none
}

// qdiscText is the root qdisc, its class, and its queue, in tc's syntax.
func (n Netns) qdiscText(link string) (string, error) {
	qdiscs, err := n.tcOutput("qdisc", "show", "dev", link, "root")
	if err != nil {
		return "", err
	}
	classes, err := n.tcOutput("class", "show", "dev", link)
	if err != nil {
		return "", err
	}
	below, err := n.tcOutput("qdisc", "show", "dev", link, "parent", ownClass)
	if err != nil {
		return "", err
	}
	lines := strings.FieldsFunc(string(qdiscs)+string(classes)+string(below), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; "), nil
}

// checkQdisc compares the kernel's qdisc with the wanted one.
func (n Netns) checkQdisc(link string, want Qdisc) error {
	all, err := n.qdiscs(link)
	if err != nil {
		return err
	}
	if err := rootOf(all).differs(want, ownHandle); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if err := checkChild(all, want.Child); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if want.Kind == "htb" || want.Kind == "hfsc" {
		return n.withLink(link, func(nl *netlink.Handle, l netlink.Link) error {
			return checkClass(nl, l, want)
		})
	}
	return nil
}

// CheckShaper compares an interface's root qdisc, which another program has set, with
// the wanted one: also the class of an htb or hfsc, and a limit that is asked for.
func (n Netns) CheckShaper(link string, want Qdisc) error {
	root, err := n.rootQdisc(link)
	if err != nil {
		return err
	}
	if want.Ceil == 0 {
		want.Ceil = want.Rate
	}
	if root.Kind != want.Kind {
		return fmt.Errorf("%s in %s has the qdisc %s, not %s", link, n, root.Kind, want.Kind)
	}
	if want.Kind != "htb" && want.Kind != "hfsc" {
		return root.differs(want, root.Handle)
	}
	return n.withLink(link, func(nl *netlink.Handle, l netlink.Link) error {
		return checkClass(nl, l, want)
	})
}

// checkChild compares the queue of the only class.
func checkChild(all []tcQdisc, want *Qdisc) error {
	if want == nil {
		return nil
	}
	for _, q := range all {
		if q.Parent == ownClass {
			return q.differs(*want, ownChild)
		}
	}
	return fmt.Errorf("no %s queues in class %s", want.Kind, ownClass)
}

func (got tcQdisc) differs(want Qdisc, handle string) error {
	o := got.Options
	if got.Kind != want.Kind || got.Handle != handle {
		return fmt.Errorf("qdisc is %s %s, not %s %s", got.Kind, got.Handle, want.Kind, handle)
	}
	if want.Limit > 0 && want.Kind != "tbf" && want.Kind != "htb" && want.Kind != "hfsc" && o.Limit != want.Limit {
		return fmt.Errorf("limit is %d, not %d", o.Limit, want.Limit)
	}
	switch want.Kind {
	case "codel", "fq_codel":
		return got.controlsOtherwise(want)
	case "tbf":
		var rate uint64
		if err := json.Unmarshal(o.Rate, &rate); err != nil {
			return fmt.Errorf("rate: %w", err)
		}
		if rate != want.Rate/8 || !near(o.Burst, want.Burst) || !near(o.Lat, uint64(want.Latency.Microseconds())) {
			return fmt.Errorf("rate %d bytes/s, burst %d bytes, latency %d µs, not %d, %d, %d",
				rate, o.Burst, o.Lat, want.Rate/8, want.Burst, want.Latency.Microseconds())
		}
	case "netem":
		if !near(uint64(o.Delay.Delay*1e6), uint64(want.Latency.Microseconds())) {
			return fmt.Errorf("delay is %g s, not %s", o.Delay.Delay, want.Latency)
		}
	}
	return nil
}

// controlsOtherwise compares what CoDel was asked for.
func (got tcQdisc) controlsOtherwise(want Qdisc) error {
	o := got.Options
	differ := func(got uint64, want time.Duration) bool { return want > 0 && !near(got, uint64(want.Microseconds())) }
	if differ(o.Target, want.Target) || differ(o.Interval, want.Interval) || want.ECN != nil && *want.ECN != o.ECN {
		return fmt.Errorf("target %d µs, interval %d µs, ecn %v, not as in %+v", o.Target, o.Interval, o.ECN, want)
	}
	return nil
}

// near allows for rounding: the kernel keeps burst and latency in clock ticks.
func near(got, want uint64) bool {
	diff := max(got, want) - min(got, want)
	return diff <= 1+want/50
}

// leafMinor is the minor number of the class for all traffic: Drayage's own, and
// Open vSwitch's first queue. Open vSwitch's root class has another number and the
// same rates.
const leafMinor = 1

// checkClass compares the class of a classful qdisc in which packets queue.
func checkClass(nl *netlink.Handle, l netlink.Link, want Qdisc) error {
	classes, err := dump(func() ([]netlink.Class, error) { return nl.ClassList(l, netlink.HANDLE_NONE) })
	if err != nil {
		return fmt.Errorf("read back classes: %w", err)
	}
	for _, c := range classes {
		if c.Attrs().Handle&0xffff != leafMinor {
			continue
		}
		switch class := c.(type) {
		case *netlink.HtbClass:
			if class.Rate == want.Rate/8 && class.Ceil == want.Ceil/8 {
				return nil
			}
		case *netlink.HfscClass:
			// The library keeps the curve's rate in 32 bits of bit/s.
			rate := uint32(want.Rate / 8 * 8)
			if class.Fsc.Rate() == rate && class.Usc.Rate() == rate {
				return nil
			}
		}
	}
	return fmt.Errorf("read back: no %s class :%d with rate %d and ceil %d bit/s", want.Kind, leafMinor, want.Rate, want.Ceil)
}
