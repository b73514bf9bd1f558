// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

// fixture makes the records of a run.
type fixture struct {
	id        string
	transport string
	kernel    string
	rng       *rand.Rand
	trials    []record.Trial
}

func newFixture(id, transport string, seed uint64) *fixture {
	return &fixture{id: id, transport: transport, kernel: "6.1", rng: rand.New(rand.NewPCG(seed, 7))}
}

// noise is a factor around 1.
func (f *fixture) noise(sd float64) float64 { return math.Exp(sd * f.rng.NormFloat64()) }

func (f *fixture) add(change func(*record.Trial)) {
	n := len(f.trials)
	t := record.Trial{
		Schema: record.Schema, Run: f.id, ID: fmt.Sprintf("t%d", n), Chain: "example", Link: "f1u", From: "cu.f1u", To: "du.f1u",
		Transport: f.transport, Instrument: record.Instrument{Name: "draygen"}, Order: n, Duration: time.Second, Marks: []string{},
		Start: time.Date(2026, 11, 20, 12, 0, n, 0, time.UTC),
		Env:   record.Environment{Kernel: f.kernel, CPUModel: "example CPU", CPUs: []int{0, 1}, Governor: "performance", Dray: "devel", Engines: map[string]string{"iperf3": "3.12"}},
	}
	change(&t)
	f.trials = append(f.trials, t)
}

// stream adds trials of a stream with a one-way delay of about delay, and the share
// lost of 20,000 packets.
func (f *fixture) stream(trials int, delay time.Duration, lost float64) {
	for range trials {
		f.add(func(t *record.Trial) {
			t.Quantity = record.QStream
			hdr := record.NewHDR()
			base := float64(delay) * f.noise(0.03)
			gone := uint64(math.Round(20_000 * lost * f.noise(0.3)))
			for range 20_000 - gone {
				if err := hdr.RecordValue(int64(base + f.rng.ExpFloat64()*base/10)); err != nil {
					panic(err)
				}
			}
			none := record.FromHDR(record.NewHDR())
			t.OneWay = &record.OneWay{Latency: record.FromHDR(hdr), Intended: none, Lateness: none, IPDV: none, Min: time.Duration(base), Max: time.Duration(hdr.Max())}
			t.Delivery = &record.Delivery{OfferedBits: 400_000_000, Sent: 20_000, Received: 20_000 - gone, Lost: gone, Jitter: time.Duration(base / 20)}
		})
	}
}

func (f *fixture) throughput(trials int, bits float64) {
	for range trials {
		f.add(func(t *record.Trial) {
			t.Quantity = record.QThroughput
			t.Instrument.Name = "iperf3"
			t.Throughput = &record.Throughput{BitsPerSecond: uint64(bits * f.noise(0.02))}
		})
	}
}

// frames adds trials of a bench.
func (f *fixture) frames(trials int, transport, load string, rate, ring float64) {
	for range trials {
		f.add(func(t *record.Trial) {
			t.Quantity, t.Link, t.From, t.To, t.Transport = record.QFrames, "bench", "a.p0", "b.p0", transport
			t.Delivery = &record.Delivery{Sent: 1_000_000, Received: 1_000_000, PacketRate: uint64(rate * f.noise(0.02))}
			t.Bench = &record.Bench{
				Config: record.Config{Transport: transport, Face: "native", Runtime: "process", Size: "64", VNF: "none"}, Load: load,
				Limit: &record.Limit{Ring: ring * f.noise(0.02), Line: 100, TSC: 2e9},
				Cost:  &record.Cost{Cores: 2 * f.noise(0.01), Memory: 64 << 20},
			}
		})
	}
}

// load writes the records and reads them as a run.
func (f *fixture) load(t *testing.T) *Run {
	t.Helper()
	path := filepath.Join(t.TempDir(), "records.jsonl")
	w, err := record.Create(path)
	testenv.Must(t, err)
	for _, trial := range f.trials {
		testenv.Must(t, w.Write(trial))
	}
	testenv.Must(t, w.Close())
	r, err := Load(path)
	testenv.Must(t, err)
	r.Path = "out/" + f.id
	return r
}

// run is a fixture's run without a file.
func (f *fixture) run(t *testing.T) *Run {
	t.Helper()
	r := &Run{Path: "out/" + f.id, Warnings: []string{}, trials: f.trials}
	testenv.Must(t, r.check(r.Path))
	return r
}
