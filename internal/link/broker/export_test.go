// SPDX-License-Identifier: Apache-2.0

package broker

import "time"

// Timeouts are a broker's, for the tests outside the package.
type Timeouts = timeouts

// Usual are the product's timeouts.
var Usual = usual

// Patient are longer than a busy machine keeps a process from running: only tests of the timeouts use others.
var Patient = timeouts{
	hello: time.Minute, classes: time.Minute, mapped: time.Minute, active: time.Minute, unread: time.Minute,
	readopt: time.Minute, capture: captureAnswer, request: time.Minute,
}

// Mapped, Active and Unread return the timeouts with one of them changed.
func (t Timeouts) Mapped(d time.Duration) Timeouts { t.mapped = d; return t }
func (t Timeouts) Active(d time.Duration) Timeouts { t.active = d; return t }
func (t Timeouts) Unread(d time.Duration) Timeouts { t.unread = d; return t }

// Within returns the options with these timeouts.
func (o Options) Within(t Timeouts) Options { o.timeouts = t; return o }
