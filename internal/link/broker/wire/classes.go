// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"syscall"
)

// Bounds of traffic classes (PROTOCOL.md, section 12).
const (
	ClassesMax     = 8
	ClassRateMax   = 10_000_000_000_000 // bit/s
	ClassRateMin   = 8                  // bit/s
	ClassBytesMin  = 64                 // of a burst and of a FIFO by bytes
	ClassLimitMax  = 65536              // packets
	ClassSlotMinNS = 1000
)

// Schedulers of classes.
const (
	SchedulerNone   = iota // one class
	SchedulerStrict        // the first class that has packets sends
	SchedulerHTB
	SchedulerHFSC
)

// Disciplines of a class.
const (
	DisciplinePFIFO = iota
	DisciplineBFIFO
	DisciplineSFQ
	DisciplineCoDel
	DisciplineFQCoDel
	DisciplineSlot
)

// Flags of a class.
const (
	ClassMeta     = 1 << iota // Meta is valid
	ClassECN                  // CoDel and FQ-CoDel mark packets
	ClassRealtime             // slots of CLOCK_REALTIME
)

// Class is a traffic class.
type Class struct {
	DSCP       uint64 `wire:"dscp" json:"dscp"`
	PCP        uint8  `wire:"pcp" json:"pcp"`
	Discipline uint8  `wire:"discipline" json:"discipline"`
	Flags      uint8  `wire:"flags" json:"flags"`
	Priority   uint8  `wire:"priority" json:"priority"`
	Meta       uint32 `wire:"meta" json:"meta"`
	Rate       uint64 `wire:"rate" json:"rate"`
	Ceil       uint64 `wire:"ceil" json:"ceil"`
	Peak       uint64 `wire:"peak" json:"peak"`
	PeakNS     uint32 `wire:"peak_ns" json:"peak_ns"`
	Limit      uint32 `wire:"limit" json:"limit"`
	TargetNS   uint32 `wire:"target_ns" json:"target_ns"`
	IntervalNS uint32 `wire:"interval_ns" json:"interval_ns"`
}

// Classes are the traffic classes of a port.
type Classes struct {
	Scheduler uint32            `wire:"scheduler" json:"scheduler"`
	Classes   uint32            `wire:"classes" json:"classes"`
	Rate      uint64            `wire:"rate" json:"rate"`
	Burst     uint32            `wire:"burst" json:"burst"`
	Reserved  uint32            `wire:"reserved" json:"reserved"`
	Reserved2 uint64            `wire:"reserved2" json:"reserved2"`
	Class     [ClassesMax]Class `wire:"class" json:"class"`
}

// Classed is the end's answer to CLASSES.
type Classed struct {
	Error    uint32 `wire:"error"`
	Reserved uint32 `wire:"reserved"`
}

// Check returns the first value that is out of bounds; the error wraps EINVAL.
func (c *Classes) Check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("traffic classes: "+format+": %w", append(args, syscall.EINVAL)...)
	}
	switch {
	case c.Scheduler > SchedulerHFSC:
		return wrong("scheduler %d", c.Scheduler)
	case !between(c.Classes, 1, ClassesMax) || c.Scheduler == SchedulerNone && c.Classes != 1:
		return wrong("%d classes with scheduler %d", c.Classes, c.Scheduler)
	case c.Rate > ClassRateMax || c.Rate < ClassRateMin && (c.Rate > 0 || c.grants()):
		return wrong("rate %d bit/s", c.Rate)
	case c.Rate == 0 && c.Burst != 0 || c.Rate > 0 && c.Burst < ClassBytesMin:
		return wrong("burst of %d bytes", c.Burst)
	case c.Reserved != 0 || c.Reserved2 != 0:
		return wrong("reserved fields")
	}
	for i := range c.Class {
		class := &c.Class[i]
		if i >= int(c.Classes) {
			if *class != (Class{}) {
				return wrong("class %d is not 0", i)
			}
			continue
		}
		if what := class.fault(c.Scheduler); what != "" {
			return wrong("%s of class %d", what, i)
		}
	}
	return nil
}

// grants reports whether each class has a rate of its own.
func (c *Classes) grants() bool {
	return c.Scheduler == SchedulerHTB || c.Scheduler == SchedulerHFSC
}

// fault names what is out of bounds; "": nothing.
func (c *Class) fault(scheduler uint32) string {
	switch {
	case c.Discipline > DisciplineSlot:
		return "discipline"
	case !c.flagsFit():
		return "flags"
	case c.Priority > 7 || c.Priority > 0 && scheduler != SchedulerHTB:
		return "priority"
	case c.Flags&ClassMeta == 0 && c.Meta != 0:
		return "meta"
	case !c.ratesFit(scheduler):
		return "rates"
	case c.Discipline == DisciplineBFIFO && c.Limit < ClassBytesMin || c.Discipline != DisciplineBFIFO && !between(c.Limit, 1, ClassLimitMax):
		return "limit"
	case !c.timesFit():
		return "times"
	}
	return ""
}

func (c *Class) flagsFit() bool {
	allowed := uint8(ClassMeta)
	switch c.Discipline {
	case DisciplineCoDel, DisciplineFQCoDel:
		allowed |= ClassECN
	case DisciplineSlot:
		allowed |= ClassRealtime
	}
	return c.Flags&^allowed == 0
}

func (c *Class) ratesFit(scheduler uint32) bool {
	inside := func(rate uint64) bool { return between(rate, ClassRateMin, ClassRateMax) }
	switch scheduler {
	case SchedulerHTB:
		return inside(c.Rate) && inside(c.Ceil) && c.Ceil >= c.Rate && between(c.Peak, ClassBytesMin, 1<<32-1) && c.PeakNS == 0
	case SchedulerHFSC:
		return inside(c.Rate) && (c.Ceil == 0 || inside(c.Ceil) && c.Ceil >= c.Rate) &&
			(c.Peak == 0 && c.PeakNS == 0 || inside(c.Peak) && c.PeakNS > 0)
	}
	return c.Rate == 0 && c.Ceil == 0 && c.Peak == 0 && c.PeakNS == 0
}

func (c *Class) timesFit() bool {
	switch c.Discipline {
	case DisciplineCoDel, DisciplineFQCoDel:
		return c.TargetNS > 0 && c.IntervalNS >= c.TargetNS
	case DisciplineSlot:
		return c.TargetNS >= ClassSlotMinNS && c.IntervalNS < c.TargetNS
	}
	return c.TargetNS == 0 && c.IntervalNS == 0
}
