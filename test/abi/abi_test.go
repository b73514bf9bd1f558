// SPDX-License-Identifier: Apache-2.0

// Package abi compares the C compiler's layout of libdray's shared structs with
// the Go compiler's layout of the broker's, and both with the protocol's vectors.
package abi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

const port = "../../dataplane/port/"

// shared are the protocol's structs: the name in the vectors, the one in C, the one in Go.
var shared = []struct {
	name, c string
	value   any
}{
	{"header", "struct wire_header", wire.Header{}},
	{"hello", "struct wire_hello", wire.Hello{}},
	{"welcome", "struct wire_welcome", wire.Welcome{}},
	{"geometry", "struct geometry", wire.Geometry{}},
	{"offer", "struct wire_offer", wire.Offer{}},
	{"mapped", "struct wire_mapped", wire.Mapped{}},
	{"rebind", "struct wire_rebind", wire.Rebind{}},
	{"stats", "struct wire_stats", wire.Stats{}},
	{"bye", "struct wire_bye", wire.Bye{}},
	{"error", "struct wire_error", wire.Error{}},
	{"capture", "struct wire_capture", wire.Capture{}},
	{"captured", "struct wire_captured", wire.Captured{}},
	{"classes", "struct wire_classes", wire.Classes{}},
	{"class", "struct wire_class", wire.Class{}},
	{"classed", "struct wire_classed", wire.Classed{}},
	{"telemetry_class", "struct telemetry_class", wire.TelemetryClass{}},
	{"lane_words", "struct lane_words", wire.LaneWords{}},
	{"descriptor", "struct descriptor", wire.Descriptor{}},
	{"extension", "struct extension", wire.Extension{}},
	{"telemetry_header", "struct telemetry_header", wire.TelemetryHeader{}},
	{"telemetry_block", "struct telemetry_block", wire.TelemetryBlock{}},
	{"capture_words", "struct capture_words", wire.CaptureWords{}},
	{"capture_record", "struct capture_record", wire.CaptureRecord{}},
}

// alone are words that C wraps into structs of their own.
var alone = map[string]bool{"returned": true, "receiver_bell": true, "sender_bell": true}

// constants are the protocol's, by their name in C.
var constants = map[string]uint64{
	"WIRE_MAGIC": wire.Magic, "WIRE_VERSION": wire.Version, "WIRE_MAX": wire.MaxMessage, "WIRE_MAX_FDS": wire.MaxFDs,
	"DRAY_MAX_QUEUES": wire.MaxQueues, "PORT_NAME": wire.PortName, "FEATURES_KNOWN": wire.FeaturesKnown,
	"WIRE_HELLO": uint64(wire.TypeHello), "WIRE_WELCOME": uint64(wire.TypeWelcome), "WIRE_OFFER": uint64(wire.TypeOffer),
	"WIRE_MAPPED": uint64(wire.TypeMapped), "WIRE_SEALED": uint64(wire.TypeSealed), "WIRE_ACTIVE": uint64(wire.TypeActive),
	"WIRE_REBIND": uint64(wire.TypeRebind), "WIRE_STATS": uint64(wire.TypeStats), "WIRE_BYE": uint64(wire.TypeBye),
	"WIRE_ERROR": uint64(wire.TypeError), "WIRE_CAPTURE": uint64(wire.TypeCapture), "WIRE_CLASSES": uint64(wire.TypeClasses),
	"FEATURE_MESSAGES": wire.FeatureMessages, "FEATURE_STAMPS": wire.FeatureStamps, "FEATURE_EXTRAS": wire.FeatureExtras,
	"FEATURE_NETDEV": wire.FeatureNetdev, "FEATURE_READOPT": wire.FeatureReadopt, "FEATURE_CAPTURE": wire.FeatureCapture, "FEATURE_CLASSES": wire.FeatureClasses,
	"HELLO_READOPT": wire.HelloReadopt, "WELCOME_READOPTED": wire.WelcomeReadopted,
	"DRAY_MODE_BUSY": wire.ModeBusy, "DRAY_MODE_ADAPTIVE": wire.ModeAdaptive, "DRAY_MODE_SLEEPING": wire.ModeSleeping,
	"CLOCK_KIND_NS": wire.ClockNS, "CLOCK_KIND_COUNTER": wire.ClockCounter, "HOLD_DROP": wire.HoldDrop, "HOLD_COPY": wire.HoldCopy,
	"DRAY_LINK_NONE": wire.KindNone, "DRAY_LINK_SHM": wire.KindShm, "DRAY_LINK_NETDEV": wire.KindNetdev,
	"REBIND_DIED": wire.RebindDied, "REBIND_LEFT": wire.RebindLeft, "REBIND_MOVES": wire.RebindMoves, "REBIND_POLICY": wire.RebindPolicy,
	"BYE_CLOSING": wire.ByeClosing, "BYE_RESTART": wire.ByeRestart,
	"SAMPLE_NONE": wire.SampleNone, "SAMPLE_SHIFT_MAX": wire.SampleShiftMax, "LAYOUT_PAGE": wire.Page,
	"COUNTERS": wire.CounterCount, "DRAY_VIOLATIONS": wire.ViolationCount, "HISTOGRAM_SIZE": wire.HistogramSize,
	"LAYOUT_PAGE + TELEMETRY_BLOCK": wire.TelemetrySize(1),
	"CAPTURE_SLOTS_MIN":             wire.CaptureSlotsMin, "CAPTURE_SLOTS_MAX": wire.CaptureSlotsMax, "CAPTURE_SNAPLEN_MAX": wire.CaptureSnaplenMax,
}

// program prints C's values of everything above.
func program() string {
	var b strings.Builder
	b.WriteString("#include <stdio.h>\n#include \"dray.h\"\n#include \"wire.h\"\n#include \"layout.h\"\nint main(void)\n{\n")
	for _, s := range shared {
		fmt.Fprintf(&b, "printf(\"struct %s %%zu\\n\", sizeof(%s));\n", s.name, s.c)
		for _, f := range fields(s.value) {
			member := f.Tag.Get("wire")
			if s.name == "lane_words" && alone[member] {
				member += ".value"
			}
			fmt.Fprintf(&b, "printf(\"field %%zu %%zu %s\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n", f.Tag.Get("wire"), s.c, member, s.c, member)
		}
	}
	for name := range constants {
		fmt.Fprintf(&b, "printf(\"constant %s %%llu\\n\", (unsigned long long)(%s));\n", name, name)
	}
	b.WriteString("return 0;\n}\n")
	return b.String()
}

// fields are the fields with a name in the protocol.
func fields(v any) []reflect.StructField {
	var all []reflect.StructField
	for i := range reflect.TypeOf(v).NumField() {
		if f := reflect.TypeOf(v).Field(i); f.Tag.Get("wire") != "" {
			all = append(all, f)
		}
	}
	return all
}

// compiled is the program's output: the lines of structs, and of constants.
func compiled(t *testing.T) (structs, values []string) {
	t.Helper()
	testenv.Program(t, "gcc")
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "abi.c"), filepath.Join(dir, "abi")
	if err := os.WriteFile(source, []byte(program()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-I"+port+"include", "-I"+port+"src", source, "-o", binary).CombinedOutput()
	if err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err = exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if strings.HasPrefix(line, "constant ") {
			values = append(values, line)
		} else {
			structs = append(structs, line)
		}
	}
	return structs, values
}

func TestStructs(t *testing.T) {
	c, _ := compiled(t)
	var inGo []string
	for _, s := range shared {
		typ := reflect.TypeOf(s.value)
		inGo = append(inGo, fmt.Sprintf("struct %s %d", s.name, typ.Size()))
		for _, f := range fields(s.value) {
			inGo = append(inGo, fmt.Sprintf("field %d %d %s", f.Offset, f.Type.Size(), f.Tag.Get("wire")))
		}
	}
	if diff := cmp.Diff(c, inGo); diff != "" {
		t.Errorf("C (-) and Go (+) differ:\n%s", diff)
	}
	b, err := os.ReadFile(port + "vectors/layout.txt")
	if err != nil {
		t.Fatal(err)
	}
	vectors := map[string]string{} // lines below each struct
	for _, part := range strings.Split(string(b), "\nstruct ")[1:] {
		name, _, _ := strings.Cut(part, " ")
		vectors[name] = strings.TrimSpace("struct " + part)
	}
	for _, part := range strings.Split(strings.Join(c, "\n"), "struct ")[1:] {
		name, _, _ := strings.Cut(part, " ")
		if diff := cmp.Diff(strings.TrimSpace("struct "+part), vectors[name]); diff != "" {
			t.Errorf("C (-) and the vectors (+) differ:\n%s", diff)
		}
		delete(vectors, name)
	}
	for name := range vectors {
		t.Errorf("struct %s of the vectors is compared with nothing", name)
	}
}

func TestConstants(t *testing.T) {
	_, values := compiled(t)
	if len(values) != len(constants) {
		t.Fatalf("%d constants were printed, of %d", len(values), len(constants))
	}
	for _, line := range values {
		at := strings.LastIndexByte(line, ' ')
		name, value := strings.TrimPrefix(line[:at], "constant "), line[at+1:]
		if want := fmt.Sprint(constants[name]); value != want {
			t.Errorf("%s is %s in C and %s in Go", name, value, want)
		}
	}
}
