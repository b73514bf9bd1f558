// SPDX-License-Identifier: Apache-2.0

package published

import (
	"regexp"
	"strconv"
	"strings"
)

// fronthaulCounters are messages of the fronthaul, by when they came, as one end counts them.
type fronthaulCounters struct {
	onTime, early, late float64
	gaps                float64 // in sequence numbers
	seconds             int
}

// all are the messages that were counted.
func (c fronthaulCounters) all() float64 { return c.onTime + c.early + c.late }

// share is a part of the messages in per cent.
func (c fronthaulCounters) share(part float64) float64 {
	if c.all() == 0 {
		return 0
	}
	return part / c.all() * 100
}

func (c fronthaulCounters) plus(o fronthaulCounters) fronthaulCounters {
	return fronthaulCounters{c.onTime + o.onTime, c.early + o.early, c.late + o.late, c.gaps + o.gaps, c.seconds + o.seconds}
}

// minus is what was counted after an earlier moment.
func (c fronthaulCounters) minus(o fronthaulCounters) fronthaulCounters {
	return fronthaulCounters{c.onTime - o.onTime, c.early - o.early, c.late - o.late, c.gaps - o.gaps, c.seconds - o.seconds}
}

// The columns of a line that ru_emulator prints each second: of the U-plane, the C-plane to the mobile and the
// C-plane from it, each on time, early, late and gaps in sequence numbers, and at last gaps of the random access channel.
const (
	ruFirst, ruPlanes, ruColumns = 3, 3, 4
	ruRandomAccess               = ruFirst + ruPlanes*ruColumns
	ruFields                     = 19
)

// radioSecond reads such a line; false: it is another.
func radioSecond(line string) (fronthaulCounters, bool) {
	fields := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	if len(fields) != ruFields {
		return fronthaulCounters{}, false
	}
	var numbers [ruFields]float64
	for i := ruFirst; i <= ruRandomAccess; i++ {
		n, ok := sumOf(fields[i])
		if !ok {
			return fronthaulCounters{}, false
		}
		numbers[i] = n
	}
	c := fronthaulCounters{gaps: numbers[ruRandomAccess], seconds: 1}
	for plane := range ruPlanes {
		at := numbers[ruFirst+plane*ruColumns:]
		c = c.plus(fronthaulCounters{at[0], at[1], at[2], at[3], 0})
	}
	return c, true
}

// sumOf adds up the numbers of a field, one for each antenna, with strokes between them.
func sumOf(field string) (sum float64, ok bool) {
	for _, part := range strings.Split(strings.TrimSpace(field), "/") {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return 0, false
		}
		sum += float64(n)
	}
	return sum, true
}

var (
	unitReceived = regexp.MustCompile(`rx_total=\d+ rx_early=(\d+) rx_on_time=(\d+) rx_late=(\d+)`)
	unitSent     = regexp.MustCompile(`nof_late_cp_dl=(\d+) nof_late_up_dl=(\d+) nof_late_cp_ul=(\d+)`)
)

// unitSecond reads the line that gnb writes each second: what it received, and how many messages it
// could not send in time; false: it is another line.
func unitSecond(line string) (got fronthaulCounters, unsent float64, ok bool) {
	r, s := unitReceived.FindStringSubmatch(line), unitSent.FindStringSubmatch(line)
	if r == nil || s == nil {
		return got, 0, false
	}
	var n [6]float64
	for i, text := range append(r[1:], s[1:]...) {
		n[i], _ = strconv.ParseFloat(text, 64) // digits, by the expression
	}
	return fronthaulCounters{onTime: n[1], early: n[0], late: n[2], seconds: 1}, n[3] + n[4] + n[5], true
}
