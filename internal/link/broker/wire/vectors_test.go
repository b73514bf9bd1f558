// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/bits"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// vectors are part of the protocol.
const vectors = "../../../../dataplane/port/vectors"

// block is the lines below one line that begins with the file's keyword.
type block struct {
	name, rest string
	lines      [][]string // key, then the other words; a text is one word
}

func readBlocks(t testing.TB, file, keyword string, least int) []block {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(vectors, file))
	testenv.Must(t, err)
	var blocks []block
	for _, line := range strings.Split(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.SplitN(line, " ", 3)
		if words[0] == keyword {
			blocks = append(blocks, block{name: words[1], rest: strings.Join(words[2:], "")})
			continue
		}
		last := &blocks[len(blocks)-1]
		last.lines = append(last.lines, words)
	}
	if len(blocks) < least {
		t.Fatalf("%s has %d blocks, fewer than %d", file, len(blocks), least)
	}
	return blocks
}

func (b block) value(key string) string {
	for _, l := range b.lines {
		if l[0] == key {
			return l[1]
		}
	}
	return ""
}

func (b block) bytes(t testing.TB) []byte {
	t.Helper()
	var all []byte
	for _, l := range b.lines {
		if l[0] == "bytes" {
			part, err := hex.DecodeString(l[1])
			if err != nil {
				t.Fatalf("%s: %v", b.name, err)
			}
			all = append(all, part...)
		}
	}
	return all
}

func (b block) sender() Sender {
	if b.value("from") == "broker" {
		return FromBroker
	}
	return FromEnd
}

func (b block) fds(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(b.value("fds"))
	if err != nil {
		t.Fatalf("%s: %v", b.name, err)
	}
	return n
}

// structs are the structs of layout.txt; messages are those that are also bodies.
var structs = map[string]any{
	"header": Header{}, "hello": Hello{}, "welcome": Welcome{}, "geometry": Geometry{}, "offer": Offer{}, "mapped": Mapped{},
	"rebind": Rebind{}, "stats": Stats{}, "bye": Bye{}, "error": Error{}, "capture": Capture{}, "captured": Captured{},
	"lane_words": LaneWords{}, "descriptor": Descriptor{}, "extension": Extension{},
	"telemetry_header": TelemetryHeader{}, "telemetry_block": TelemetryBlock{},
	"classes": Classes{}, "class": Class{}, "classed": Classed{}, "telemetry_class": TelemetryClass{},
	"capture_words": CaptureWords{}, "capture_record": CaptureRecord{},
}

var types = map[string]Type{
	"hello": TypeHello, "welcome": TypeWelcome, "offer": TypeOffer, "mapped": TypeMapped, "sealed": TypeSealed, "active": TypeActive,
	"rebind": TypeRebind, "stats": TypeStats, "bye": TypeBye, "error": TypeError, "capture": TypeCapture, "captured": TypeCapture,
	"classes": TypeClasses, "classed": TypeClasses,
}

// field finds a field by its name in the protocol, with dots between levels, and the
// index of an array's element: "class[1].rate".
func field(v reflect.Value, path string) (reflect.Value, bool) {
	name, rest, deeper := strings.Cut(path, ".")
	name, index, indexed := strings.Cut(name, "[")
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("wire") != name {
			continue
		}
		if indexed {
			n, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || n >= v.Field(i).Len() {
				break
			}
			return field(v.Field(i).Index(n), rest)
		}
		if deeper {
			return field(v.Field(i), rest)
		}
		return v.Field(i), true
	}
	return reflect.Value{}, false
}

func setField(t testing.TB, v reflect.Value, name, value string) {
	t.Helper()
	f, ok := field(v, name)
	if !ok {
		t.Fatalf("%s has no field %s", v.Type(), name)
	}
	if f.Kind() != reflect.Array {
		n, err := strconv.ParseUint(value, 0, 64)
		if err != nil || f.OverflowUint(n) {
			t.Fatalf("%s: %s: %v", name, value, err)
		}
		f.SetUint(n)
		return
	}
	raw := []byte(value)
	if name != "port" && name != "text" {
		var err error
		if raw, err = hex.DecodeString(value); err != nil || len(raw) != f.Len() {
			t.Fatalf("%s: %s: %v", name, value, err)
		}
	}
	reflect.Copy(f, reflect.ValueOf(raw))
}

func messageOf(t testing.TB, b block) Message {
	t.Helper()
	name, _, _ := strings.Cut(b.name, "-")
	if name == "stats" && b.sender() == FromBroker {
		return Message{Type: TypeStats}
	}
	m := Message{Type: types[name]}
	var body reflect.Value
	if s, ok := structs[name]; ok {
		body = reflect.New(reflect.TypeOf(s))
		m.Body = body.Interface()
	}
	counters := 0
	for _, l := range b.lines {
		if l[0] != "field" {
			continue
		}
		switch {
		case l[1] == "generation":
			n, err := strconv.ParseUint(l[2], 0, 32)
			testenv.Must(t, err)
			m.Generation = uint32(n)
		case name == "stats" && l[1] != "queues" && l[1] != "reserved":
			n, err := strconv.ParseUint(l[2], 0, 64)
			testenv.Must(t, err)
			body.Elem().FieldByName("Counters").Index(counters).SetUint(n)
			counters++
		default:
			setField(t, body.Elem(), l[1], strings.Join(l[2:], ""))
		}
	}
	return m
}

func TestMessages(t *testing.T) {
	for _, b := range readBlocks(t, "messages.txt", "message", 25) {
		t.Run(b.name, func(t *testing.T) {
			want, m := b.bytes(t), messageOf(t, b)
			if got := m.Marshal(); !bytes.Equal(got, want) {
				t.Errorf("fields encode to\n%x, want\n%x", got, want)
			}
			got, err := Parse(want, b.fds(t), b.sender())
			if err != nil || !reflect.DeepEqual(got, m) {
				t.Errorf("bytes decode to %+v, %v, want %+v", got, err, m)
			}
			if _, err := Parse(want, b.fds(t)+1, b.sender()); err == nil {
				t.Error("one extra descriptor is accepted")
			}
		})
	}
}

func TestBadMessages(t *testing.T) {
	errs := map[string]error{"EPROTO": syscall.EPROTO, "EPROTONOSUPPORT": syscall.EPROTONOSUPPORT, "EMSGSIZE": syscall.EMSGSIZE, "ignored": ErrIgnored}
	for _, b := range readBlocks(t, "bad.txt", "case", 115) {
		t.Run(b.name, func(t *testing.T) {
			want := errs[b.value("error")]
			if _, err := Parse(b.bytes(t), b.fds(t), b.sender()); want == nil || !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

func TestGeometries(t *testing.T) {
	for _, b := range readBlocks(t, "geometry.txt", "geometry", 26) {
		t.Run(b.name, func(t *testing.T) {
			var g Geometry
			for _, l := range b.lines {
				if l[0] == "field" {
					setField(t, reflect.ValueOf(&g).Elem(), l[1], l[2])
				}
			}
			o, err := g.Derive()
			if b.value("error") != "" {
				if err == nil {
					t.Errorf("accepted: %+v", g)
				}
				return
			}
			testenv.Must(t, err)
			derived := map[string]uint64{"extensions": o.Extensions, "completions": o.Completions, "packets": o.Packets,
				"messages": o.Messages, "lane_size": o.LaneSize, "size": o.Size}
			for _, l := range b.lines {
				if l[0] == "derived" && strconv.FormatUint(derived[l[1]], 10) != l[2] {
					t.Errorf("%s is %d, want %s", l[1], derived[l[1]], l[2])
				}
			}
			g.Size = o.Size
			if _, err := g.Check(); err != nil {
				t.Error("the right size is rejected")
			}
			g.Size--
			if _, err := g.Check(); err == nil {
				t.Error("a wrong size is accepted")
			}
		})
	}
}

func TestLayout(t *testing.T) {
	for _, b := range readBlocks(t, "layout.txt", "struct", 21) {
		t.Run(b.name, func(t *testing.T) {
			s, ok := structs[b.name]
			if !ok {
				t.Fatal("no such struct here")
			}
			typ := reflect.TypeOf(s)
			if want, _ := strconv.Atoi(b.rest); int(typ.Size()) != want || binary.Size(s) != want {
				t.Errorf("size is %d, %d when encoded, want %s", typ.Size(), binary.Size(s), b.rest)
			}
			var got []string
			for i := range typ.NumField() {
				if f := typ.Field(i); f.Name != "_" {
					got = append(got, strconv.Itoa(int(f.Offset))+" "+strconv.Itoa(int(f.Type.Size()))+" "+f.Tag.Get("wire"))
				}
			}
			var want []string
			for _, l := range b.lines {
				want = append(want, l[1]+" "+l[2])
			}
			// Reserved words that no vector names are padding.
			if !reflect.DeepEqual(got, want) {
				t.Errorf("fields are\n%q, want\n%q", got, want)
			}
		})
	}
}

func TestDescriptors(t *testing.T) {
	for _, b := range readBlocks(t, "descriptors.txt", "descriptor", 3) {
		t.Run(b.name, func(t *testing.T) {
			var d Descriptor
			if _, err := binary.Decode(b.bytes(t), binary.LittleEndian, &d); err != nil {
				t.Fatal(err)
			}
			got := map[string]uint64{"slot": uint64(d.slot()), "region": uint64(d.region()), "length": uint64(d.length()),
				"offset": uint64(d.offset()), "flags": uint64(d.flags()), "meta": uint64(d.meta())}
			for _, l := range b.lines {
				if l[0] != "field" {
					continue
				}
				if want, err := strconv.ParseUint(l[2], 0, 64); err != nil || got[l[1]] != want {
					t.Errorf("%s is %d, want %s", l[1], got[l[1]], l[2])
				}
			}
		})
	}
}

func TestHistogram(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(vectors, "histogram.txt"))
	testenv.Must(t, err)
	seen := 0
	for _, line := range strings.Split(string(b), "\n") {
		words := strings.Fields(line)
		if len(words) != 2 || line[0] == '#' {
			continue
		}
		value, err1 := strconv.ParseUint(words[0], 10, 64)
		index, err2 := strconv.Atoi(words[1])
		testenv.Must(t, errors.Join(err1, err2))
		if got := histogramIndex(value); got != index {
			t.Errorf("%d is counted in %d, want %d", value, got, index)
		}
		if HistogramLow(index) > value || HistogramLow(index+1) <= value {
			t.Errorf("bucket %d is [%d, %d), and does not hold %d", index, HistogramLow(index), HistogramLow(index+1), value)
		}
		seen++
	}
	if seen < 50 {
		t.Fatalf("only %d values", seen)
	}
}

// Region and slot, length, offset, flags and metadata of a descriptor.
func (d Descriptor) region() uint32 { return uint32(d.PlaceLength) >> 24 }
func (d Descriptor) slot() uint32   { return uint32(d.PlaceLength) & 0xffffff }
func (d Descriptor) length() uint32 { return uint32(d.PlaceLength >> 32) }
func (d Descriptor) offset() uint16 { return uint16(d.OffsetFlagsMeta) }
func (d Descriptor) flags() uint16  { return uint16(d.OffsetFlagsMeta >> 16) }
func (d Descriptor) meta() uint32   { return uint32(d.OffsetFlagsMeta >> 32) }

// histogramIndex is the bucket of a value below 2^41.
func histogramIndex(v uint64) int {
	if v < 32 {
		return int(v)
	}
	e := bits.Len64(v) - 1
	return (e-5)*32 + int(v>>(e-5))
}
