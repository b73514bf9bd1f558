// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// The classes that a function reports are taken only if they are possible ones.
func TestReportedClasses(t *testing.T) {
	h := TelemetryHeader{Magic: telemetryMagic, Version: Version}
	h.Classes = Classes{Classes: 1, Rate: 1e6, Burst: 3000}
	h.Classes.Class[0] = Class{Discipline: DisciplinePFIFO, Limit: 512}
	h.Class[0] = TelemetryClass{Packets: 3, Late: 2, Queued: 1, LongestNS: 7000}
	parse := func() *Telemetry {
		t.Helper()
		b, err := binary.Append(nil, binary.LittleEndian, h)
		testenv.Must(t, err)
		got, err := ParseTelemetry(append(b, make([]byte, int(TelemetrySize(1))-len(b))...), 1)
		testenv.Must(t, err)
		return got
	}
	if got := parse(); got.Classes == nil || *got.Classes != h.Classes || got.Class != h.Class {
		t.Errorf("read %+v, %+v", got.Classes, got.Class[0])
	}
	h.Classes.Classes = 9
	if got := parse(); got.Classes != nil {
		t.Errorf("nine classes are taken: %+v", got.Classes)
	}
	h.Classes = Classes{}
	if got := parse(); got.Classes != nil {
		t.Errorf("none are taken for classes: %+v", got.Classes)
	}
}
