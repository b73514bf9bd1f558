// SPDX-License-Identifier: Apache-2.0

package published

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/test/testenv"
)

func queued(face chain.Face, qdisc, queue string) experiment.Cell {
	return experiment.Cell{Tool: experiment.ToolQueue, Transport: "shm", Face: face, Runtime: chain.RuntimeRunc, Qdisc: qdisc, Queue: queue, Rate: 20_000_000}
}

// TestQueuesAreAlike: every discipline has the same limit, whichever side queues.
func TestQueuesAreAlike(t *testing.T) {
	for _, face := range []chain.Face{chain.FaceNative, chain.FaceNetdev} {
		for _, kinds := range [][2]string{{"tbf", "pfifo"}, {"tbf", "bfifo"}, {"tbf", "sfq"}, {"tbf", "codel"}, {"tbf", "fq_codel"}, {"htb", ""}, {"hfsc", ""}} {
			c := queued(face, kinds[0], kinds[1])
			parsed, err := chain.Parse(c.String(), chainText(host2(), c))
			testenv.Must(t, err)
			want := chain.Qdisc{Kind: kinds[1], Limit: 100}
			switch kinds[1] {
			case "":
				want.Kind = "pfifo"
			case "bfifo":
				want.Limit = 151_400
			}
			q := parsed.Links[0].QoS
			if q.Kind != kinds[0] || q.Rate != 20_000_000 || q.Child == nil || q.Child.Kind != want.Kind || q.Child.Limit != want.Limit {
				t.Errorf("%s: %+v", c, q)
			}
		}
	}
	c := queued(chain.FaceNative, "prio", "")
	parsed, err := chain.Parse(c.String(), chainText(host2(), c))
	testenv.Must(t, err)
	q := parsed.Links[0].QoS
	if len(q.Classes) != 2 || !slices.Equal(q.Classes[0].DSCP, []int{queueStreams(c, time.Second).DSCP}) || q.Classes[1].Child.Limit != 100 {
		t.Errorf("%+v", q)
	}
}

func TestQueueStreams(t *testing.T) {
	c := queued(chain.FaceNative, "htb", "")
	c.Times = 3
	if p := queueStreams(c, time.Second); p.Duration != 3*time.Second || p.Bitrate != 1_000_000 || p.Frame != 106 || p.Bulk.Bitrate != 24_000_000 || p.Bulk.Frame != 1514 {
		t.Errorf("%+v, %+v", p, p.Bulk)
	}
	c.Message, c.Load = 1470, "19Mbps"
	if p := queueStreams(c, time.Second); p.Bitrate != 19_000_000 || p.Frame != 1512 || p.Bulk != nil || p.DSCP != 0 {
		t.Errorf("one stream: %+v", p)
	}
}

// TestQueueFigures: times are of the packets that arrived, although a tenth was lost.
func TestQueueFigures(t *testing.T) {
	waits, err := record.FromLogLinear(6, []int64{1 << 20}, []int64{1800})
	testenv.Must(t, err)
	trial := record.Trial{
		Quantity: record.QStream, OneWay: &record.OneWay{Latency: waits},
		Delivery: &record.Delivery{Sent: 2000, Received: 1800, Lost: 200, ReceivedBits: 800_000, Jitter: 3 * time.Millisecond, Bulk: &record.Bulk{Bits: 18_000_000}},
	}
	v, err := queueFigures(trial)
	if err != nil || v["throughput"] != 18.8 || v["loss"] != 10 || v["jitter"] != 3 {
		t.Errorf("%v, %v", v, err)
	}
	if v["latency_mean"] < 1048 || v["latency_mean"] > 1065 || v["latency_p99"] < v["latency_mean"] {
		t.Errorf("%v", v)
	}
	trial.Delivery.Bulk, trial.OneWay = nil, nil
	if v, err = queueFigures(trial); err != nil || v["throughput"] != 0.8 || len(v) != 2 {
		t.Errorf("one stream without a common clock: %v, %v", v, err)
	}
}

// TestQueueThatIsNotFull: waits in an empty queue say nothing.
func TestQueueThatIsNotFull(t *testing.T) {
	c := queued(chain.FaceNetdev, "tbf", "sfq")
	if err := keptFull(c, 15.9); err == nil || !strings.Contains(err.Error(), "15.9 of the queue's 20 Mb/s") {
		t.Error(err)
	}
	testenv.Must(t, keptFull(c, 16))
	c.Load = "10Mbps"
	testenv.Must(t, keptFull(c, 9))
}

// TestKernelIsNotNeededForNativeQueues: what the host's kernel lacks, libdray has.
func TestKernelIsNotNeededForNativeQueues(t *testing.T) {
	if lacks := Lacks(host2(), false, queued(chain.FaceNative, "tbf", "sfq")); len(lacks) != 0 {
		t.Errorf("a native port lacks %v", lacks)
	}
	if lacks := Lacks(host2(), false, queued(chain.FaceNetdev, "tbf", "sfq")); !slices.Equal(lacks, []string{"tbf", "sfq"}) {
		t.Errorf("an interface lacks %v", lacks)
	}
}
