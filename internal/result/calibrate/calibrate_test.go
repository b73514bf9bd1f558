// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"slices"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

// trials is three rounds in both directions, the way back slower and lossier.
func trials() []record.Trial {
	var all []record.Trial
	for round := range 3 {
		for i, way := range [][2]string{{"a.p0", "b.p0"}, {"b.p0", "a.p0"}} {
			base := record.Trial{From: way[0], To: way[1], Round: round, Marks: []string{}}
			slower := int64(1 + i)
			stream, throughput, rate, check := base, base, base, base
			stream.Quantity, stream.OneWay = record.QStream, oneWay(10_000*slower, 2000)
			stream.Delivery = &record.Delivery{Sent: 100_000, Lost: uint64(10 * slower), ReceiverDrops: 5}
			stream.Marks = []string{"busy"}
			throughput.Quantity = record.QThroughput
			throughput.Throughput = &record.Throughput{Traffic: "tcp", BitsPerSecond: uint64(8_000_000_000/slower) + uint64(round)}
			datagrams := base
			datagrams.Quantity, datagrams.Delivery = record.QThroughput, &record.Delivery{FrameBytes: 1618}
			datagrams.Throughput = &record.Throughput{Traffic: "udp", BitsPerSecond: uint64(1_000_000_000/slower) + uint64(round)}
			rate.Quantity, rate.Delivery = record.QPacketRate, &record.Delivery{PacketRate: uint64(300_000/slower) + uint64(round)}
			// A cross-check gives another figure, and must be ignored.
			check.Quantity, check.CrossCheck, check.Marks = record.QPacketRate, true, []string{"governor"}
			check.Delivery = &record.Delivery{PacketRate: 1}
			all = append(all, stream, throughput, datagrams, rate, check)
		}
	}
	return all
}

// oneWay is n samples around a value in ns, one in a hundred of ten times that.
func oneWay(value int64, n int) *record.OneWay {
	h := record.NewHDR()
	for i := range n {
		v := value
		if i%100 == 99 {
			v *= 10
		}
		if err := h.RecordValue(v); err != nil {
			panic(err)
		}
	}
	return &record.OneWay{Latency: record.FromHDR(h), Min: time.Duration(value)}
}

func TestTheWorseDirectionCounts(t *testing.T) {
	c, err := FromTrials("veth", "records.jsonl", time.Now(), trials())
	if err != nil {
		t.Fatal(err)
	}
	if c.TCPBitrate < 3_900_000_000 || c.TCPBitrate > 4_000_000_002 {
		t.Errorf("TCP bitrate %d, want a lower bound of the slower 4 Gb/s", c.TCPBitrate)
	}
	if c.UDPBitrate < 499_000_000 || c.UDPBitrate > 500_000_002 || c.UDPFrame != 1618 {
		t.Errorf("UDP bitrate %d in frames of %d bytes, want a lower bound of the slower 0.5 Gb/s in 1,618", c.UDPBitrate, c.UDPFrame)
	}
	if c.PacketRate < 149_000 || c.PacketRate > 150_002 {
		t.Errorf("packet rate %d, want a lower bound of the slower 150,000/s", c.PacketRate)
	}
	// The link lost 15 in 100,000, in addition to the receiver's drops.
	if c.LossRatio < 15e-5 || c.LossRatio > 30e-5 {
		t.Errorf("loss ratio %g, want an upper bound of 1.5e-4", c.LossRatio)
	}
	p50 := c.Latency[0]
	if p50.Percentile != 50 || p50.Latency < 20*time.Microsecond || p50.Latency > 21*time.Microsecond {
		t.Errorf("p50 %+v, want the 20 µs of the slower direction", p50)
	}
	if !slices.Equal(c.Marks, []string{"busy"}) {
		t.Errorf("marks %v", c.Marks)
	}
}

func TestPercentilesBeyondTheSamplesAreLeftOut(t *testing.T) {
	c, err := FromTrials("veth", "records.jsonl", time.Now(), trials())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Latency {
		if p.Percentile == 99.99 {
			t.Error("6,000 samples gave a p99.99, which takes 100,000")
		}
	}
}

// TestPortsWithoutTCPAreCalibrated: shared memory carries only datagrams.
func TestPortsWithoutTCPAreCalibrated(t *testing.T) {
	kept := slices.DeleteFunc(trials(), func(tr record.Trial) bool { return tr.Throughput != nil && tr.Throughput.Traffic == "tcp" })
	if c, err := FromTrials("shm", "records.jsonl", time.Now(), kept); err != nil || c.TCPBitrate != 0 || c.UDPBitrate == 0 {
		t.Errorf("%+v, %v", c, err)
	}
	kept = slices.DeleteFunc(trials(), func(tr record.Trial) bool { return tr.Throughput != nil && tr.Throughput.Traffic == "udp" })
	if c, err := FromTrials("veth", "records.jsonl", time.Now(), kept); err == nil {
		t.Errorf("without datagrams: %+v", c)
	}
}

func TestAQuantityWithoutResultsIsAnError(t *testing.T) {
	for _, missing := range []record.Quantity{record.QStream, record.QThroughput, record.QPacketRate} {
		kept := slices.DeleteFunc(trials(), func(tr record.Trial) bool { return tr.Quantity == missing })
		if _, err := FromTrials("veth", "records.jsonl", time.Now(), kept); err == nil {
			t.Errorf("no trial of %s, and no error", missing)
		}
	}
}

// TestTrialsThatDifferTooMuchAreNoEvidence: a busy machine must not make the planner
// believe that a transport carries nothing.
func TestTrialsThatDifferTooMuchAreNoEvidence(t *testing.T) {
	wild := trials()
	for i := range wild {
		if wild[i].Quantity == record.QPacketRate && !wild[i].CrossCheck {
			wild[i].Delivery.PacketRate = []uint64{1000, 900_000, 5000}[i%3]
		}
	}
	if c, err := FromTrials("veth", "records.jsonl", time.Now(), wild); err == nil {
		t.Errorf("a packet rate of %d from trials all over the place", c.PacketRate)
	}
}

func TestTheChainParses(t *testing.T) {
	for _, transport := range []string{"veth", "macvlan", "bridge", "ovs", "shm"} {
		c, err := chain.Parse("calibration", Chain(transport))
		if err != nil {
			t.Fatal(err)
		}
		if c.Links[0].Transport != transport {
			t.Errorf("transport %s", c.Links[0].Transport)
		}
	}
}
