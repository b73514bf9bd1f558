// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const experimentHead = "apiVersion: drayage/v1\nkind: Experiment\nname: x\ntitle: t\nsource: s\nrows:\n"

const goodRow = "  - {name: a, title: A, figure: throughput, value: 93.4, cell: {tool: tcp, transport: bridge, runtime: runc, qdisc: htb, rate: 100Mbps}}\n"

// atSwitch is a row whose switch attaches the qdisc.
func atSwitch(transport, qdisc, more string) string {
	return "  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: " + transport + ", runtime: runc, qdisc: " + qdisc + ", rate: 1Mbps, at: switch" + more + "}}\n"
}

// batched is a row that limits the packets in one system call.
func batched(face string, most int) string {
	return fmt.Sprintf("  - {name: a, title: A, figure: packet_rate, cell: {tool: frames, transport: veth, face: %s, runtime: runc, size: 110, load: max, batch: %d}}\n", face, most)
}

// ticking is a row of a VNF whose machine's tick is set.
func ticking(runtime string) string {
	return "  - {name: a, title: A, figure: packet_rate, cell: {tool: frames, transport: vhost-user, face: dpdk, runtime: " + runtime + ", vnf: l2fwd, size: 64, load: max, nohz_full: true}}\n"
}

// contained is a row whose functions are in containers in VMs.
func contained(runtime string) string {
	return "  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: " + runtime + ", vm_runtime: runc}}\n"
}

func TestParseExperiment(t *testing.T) {
	e, err := Parse("x.yaml", []byte(experimentHead+goodRow+"  - {name: b, title: B, not_run: no NIC}\nclaims:\n  - {text: c, less: a, than: b}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Cell{Tool: ToolTCP, Transport: "bridge", Runtime: chain.RuntimeRunc, Qdisc: "htb", Rate: 100_000_000}
	if e.Rows[0].Cell != want || e.Rows[0].Value != 93.4 || e.Rows[1].NotRun != "no NIC" || len(e.Claims) != 1 {
		t.Errorf("%+v", e)
	}
	if got := want.String(); got != "tcp/bridge/runc/htb/100Mbps" {
		t.Errorf("the cell is called %s", got)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var again Experiment
	if err := json.Unmarshal(text, &again); err != nil || again.Rows[0].Cell != want {
		t.Errorf("%v: %+v", err, again)
	}
}

func queued(fields string) string {
	return "  - {name: a, title: A, figure: loss, cell: {tool: queue, transport: shm, " + fields + "}}\n"
}

func TestQueueCells(t *testing.T) {
	for fields, want := range map[string]string{
		"face: native, runtime: runc, qdisc: prio, rate: 20Mbps":                                          "queue/shm/native/runc/prio/20Mbps",
		"face: netdev, runtime: runc, qdisc: tbf, queue: sfq, rate: 20Mbps, kernel: generic":              "queue/shm/netdev/runc/tbf/20Mbps/sfq/generic",
		"face: native, runtime: docker, qdisc: htb, rate: 100Mbps, message: 1472, load: 95Mbps, times: 2": "queue/shm/native/docker/95Mbps/message-1472/times-2/htb/100Mbps",
		"face: native, runtime: process, qdisc: hfsc, rate: 100Mbps, message: 18":                         "queue/shm/native/process/message-18/hfsc/100Mbps",
	} {
		e, err := Parse("x.yaml", []byte(experimentHead+queued(fields)))
		if err != nil || e.Rows[0].Cell.String() != want || e.Rows[0].Figure.Unit() != "% of packets" {
			t.Errorf("%s: %v, %v", fields, err, e)
		}
	}
}

func TestBadExperiments(t *testing.T) {
	for text, want := range map[string]string{
		"  - {name: a, title: A}\n": "x.yaml:7:5: the row states neither",
		goodRow + goodRow:           "two rows are called",
		"  - {name: a, title: A, figure: hides_cpus, value: 1, cell: {tool: checks, runtime: runc}}\n":                                              "no ratio to a published value",
		goodRow + "  - {name: b, title: B, figure: hides_cpus, cell: {tool: checks, runtime: runc}}\nclaims: [{text: t, less: a, than: b}]\n":       "cannot compare pass-or-fail",
		goodRow + "claims: [{text: t, less: a, than: zz}]\n":                                                                                        `the row "zz", which does not exist`,
		goodRow + "claims: [{text: t, less: a, than: a}]\n":                                                                                         "with itself",
		"  - {name: a, title: A, figure: jitter, cell: {tool: tcp, transport: veth, runtime: runc}}\n":                                              "does not measure the figure",
		"  - {name: a, title: A, figure: packet_rate, cell: {tool: pool, runtime: docker, workers: 2}}\n":                                           "write runc or process",
		"  - {name: a, title: A, figure: outage, cell: {tool: pool, runtime: runc, workers: 1, event: kill}}\n":                                     "write at least 2",
		"  - {name: a, title: A, figure: sessions_lost, cell: {tool: pool, runtime: runc, workers: 2}}\n":                                           "rates are measured without an event",
		"  - {name: a, title: A, figure: packet_rate, cell: {tool: pool, runtime: runc, workers: 2, event: add}}\n":                                 "rates are measured without an event",
		"  - {name: a, title: A, figure: packet_rate, cell: {tool: pool, runtime: runc, workers: 2, state: store}}\n":                               "state",
		"  - {name: a, title: A, figure: runs, cell: {tool: image, image: debian, runtime: docker}}\n":                                              "write runc",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, runtime: runc}}\n":                                                           `needs the field "transport"`,
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, load: max}}\n":                               `takes no field "load"`,
		"  - {name: a, title: A, figure: jitter, cell: {tool: udp, transport: veth, runtime: runc, load: max}}\n":                                   "sends at a bit rate",
		"  - {name: a, title: A, figure: throughput, value: -1, cell: {tool: tcp, transport: veth, runtime: runc}}\n":                               "a published value cannot be",
		"  - {name: a, title: A, not_run: x, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc}}\n":                              "a row is either measured or not run",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, qdisc: pfifo, queue: sfq}}\n":                "a queue needs a shaper above it",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, qdisc: htb, rate: 1Mbps, far_queue: sfq}}\n": "far_queue replaces queue",
		atSwitch("ovs", "htb", ", queue: sfq"):     "x.yaml:7:138: at the switch only a FIFO can queue",
		atSwitch("ovs", "htb", ", far_queue: sfq"): "x.yaml:7:142: at the switch only a FIFO can queue",
		atSwitch("ovs", "tbf", ""):                 "only Open vSwitch sets a qdisc itself",
		atSwitch("bridge", "htb", ""):              "only Open vSwitch sets a qdisc itself",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, datapath: kernel}}\n":                                        "only Open vSwitch has a datapath",
		"  - {name: a, title: A, figure: packet_rate, cell: {tool: frames, transport: veth, face: netdev, runtime: runc, size: 64, load: max, datapath: kernel}}\n": "only Open vSwitch has a datapath",
		contained("runc"): "only a virtual machine has a runtime",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: vm, vm_runtime: docker}}\n":                       `"docker"`,
		"  - {name: a, title: A, figure: start_time, cell: {tool: start, runtime: vm, vm_runtime: runc}}\n":                                        `takes no field "vm_runtime"`,
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, bulk: true}}\n":                             `takes no field "bulk"`,
		"  - {name: a, title: A, figure: wakeup_max, cell: {tool: cyclictest, kernel: low}}\n":                                                     `"low"`,
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, delay: 50us}}\n":                            "an underlay needs hosts",
		"  - {name: a, title: A, figure: memory, cell: {tool: start, runtime: vm, memory: 4}}\n":                                                   "no process fits",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: vxlan, runtime: runc}}\n":                                        "the transport vxlan joins hosts",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, hosts: 2}}\n":                               "only a tunnel joins hosts",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, underlay: 1Gbps}}\n":                        "an underlay needs hosts",
		"  - {name: a, title: A, figure: packet_rate, cell: {tool: frames, transport: vxlan, face: native, runtime: runc, size: 64, load: max}}\n": "the tool frames measures on one host",
		"  - {name: a, title: A, figure: stall_max, cell: {tool: spin, runtime: runc}}\n":                                                          "boots with its own kernel command line",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: vm, nohz_full: true}}\n":                          `takes no field "nohz_full"`,
		"  - {name: a, title: A, figure: runs, cell: {tool: image, runtime: runc}}\n":                                                              `needs the field "image"`,
		"  - {name: a, title: A, figure: runs, cell: {tool: image, image: x, runtime: process}}\n":                                                 "runtime runc",
		"  - {name: a, title: A, figure: runs, value: 1, cell: {tool: image, image: x, runtime: runc}}\n":                                          "no ratio to a published value",
		goodRow + "claims: [{text: t, less: a}]\n":                                                                                                 "two rows and within",
		goodRow + "claims: [{text: t, same: [a, zz]}]\n":                                                                                           "two rows and within",
		goodRow + "claims: [{text: t, same: [a], within: 10%}]\n":                                                                                  "two rows and within",
		goodRow + "claims: [{text: t, same: [a, zz], within: 10%, less: a, than: b}]\n":                                                            "two rows and within",
		goodRow + "claims: [{text: t, same: [a, zz], within: 10%}]\n":                                                                              `the row "zz", which does not exist`,
		goodRow + "claims: [{text: t, same: [a, a], within: 10%}]\n":                                                                               "with itself",
		goodRow + "claims: [{text: t, same: [a, b], within: 2}]\n":                                                                                 "ratio",
		"  - {name: a, title: A, figure: latency_mean, cell: {tool: oneway, transport: veth, runtime: runc, load: 1kpps}}\n":                       "sends at a bit rate",
		"  - {name: a, title: A, figure: latency_max, cell: {tool: oneway, transport: veth, runtime: runc, load: 1Mbps}}\n":                        "does not measure the figure",
		"  - {name: a, title: A, figure: jitter, cell: {tool: udp, transport: veth, runtime: runc, load: 95Mbps, times: 1}}\n":                     "2 to 10",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, times: 10}}\n":                              `takes no field "times"`,
		"  - {name: a, title: A, figure: round_trip, cell: {tool: requests, transport: veth, runtime: runc, message: 10}}\n":                       `takes no field "message"`,
		queued("face: dpdk, runtime: runc, qdisc: tbf, rate: 1Mbps"):                                                                               "has the queue of a native one",
		queued("face: native, runtime: vm, qdisc: tbf, rate: 1Mbps"):                                                                               "are not those of a queue",
		queued("face: native, runtime: runc, qdisc: tbf, rate: 1Mbps, load: 1kpps"):                                                                "sends at a bit rate",
		queued("face: native, runtime: runc, qdisc: tbf, rate: 1Mbps, message: 17"):                                                                "18 to 1472 bytes",
		queued("face: native, runtime: runc, qdisc: tbf, rate: 1Mbps, message: 1473"):                                                              "18 to 1472 bytes",
		queued("face: native, runtime: runc, qdisc: tbf"):                                                                                          `needs the field "rate"`,
		queued("face: netdev, runtime: runc, qdisc: prio, rate: 1Mbps"):                                                                            "only classes of a native port",
		queued("face: native, runtime: runc, qdisc: prio, rate: 1Mbps, queue: codel"):                                                              "only classes of a native port",
		"  - {name: a, title: A, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc, qdisc: prio, rate: 1Mbps}}\n":               "only classes of a native port",
		batched("netdev", 65): "1 to 64",
		batched("native", 1):  "x.yaml:7:142: only ports with face netdev",
		"  - {name: a, title: A, figure: round_trip, cell: {tool: echo, transport: shm, runtime: runc}}\n":                                 `needs the field "face"`,
		"  - {name: a, title: A, figure: clock_bound, cell: {tool: clocks, transport: ovs, runtime: runc, forwarding: learning}}\n":        `takes no field "forwarding"`,
		"  - {name: a, title: A, figure: packet_rate, cell: {tool: sockets, transport: veth, runtime: docker, kernel_face: veth}}\n":       "no image of Drayage has it",
		"  - {name: a, title: A, not_run: x, value: 3}\n":                                                                                  "has no figure to compare",
		"  - {name: a, title: A, tilte: x, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc}}\n":                       `did you mean "title"`,
		"  - {name: a, title: A, cell: {tool: tcp, transport: veth, runtime: runc}}\n":                                                     `needs the field "figure"`,
		goodRow + "  - {name: b, title: B, figure: start_time, cell: {tool: start, runtime: vm}}\nclaims: [{text: t, less: a, than: b}]\n": "compares",
	} {
		_, err := Parse("x.yaml", []byte(experimentHead+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestIsExperiment(t *testing.T) {
	for text, want := range map[string]bool{experimentHead + "nonsense: 1\n": true, "kind: Bench\n": false, "[1]": false, "\t": false} {
		if text == experimentHead+"nonsense: 1\n" {
			text = strings.Replace(text, "rows:\n", "", 1)
		}
		if got := Is([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("experiment.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("experiment.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every published experiment follows the schema.
func TestExperimentSchema(t *testing.T) {
	s := compiledSchema(t)
	files, err := filepath.Glob("../../../experiments/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !Is(text) {
			continue
		}
		seen++
		var value any
		if err := yaml.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(value); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if seen < 15 {
		t.Errorf("only %d experiments", seen)
	}
	// Parser and schema must agree: a schema that refuses nothing proves nothing.
	for rows, good := range map[string]bool{
		"  - {name: a, title: A}\n":                   false, // neither measured nor not_run
		atSwitch("ovs", "hfsc", ""):                   true,
		atSwitch("ovs", "hfsc", ", datapath: kernel"): true,
		atSwitch("ovs", "fq_codel", ""):               true,
		atSwitch("ovs", "pfifo", ""):                  false,
		atSwitch("ovs", "htb", ", queue: sfq"):        false,
		atSwitch("ovs", "htb", ", far_queue: sfq"):    false,
		atSwitch("ovs", "tbf", ""):                    false,
		atSwitch("bridge", "htb", ""):                 false,
		contained("vm"):                               true,
		contained("runc"):                             false,
		ticking("vm"):                                 true,
		ticking("runc"):                               false,
		batched("netdev", 1):                          true,
		batched("netdev", 0):                          false,
		batched("native", 1):                          false,
		ofMemory("vm"):                                true,
		ofMemory("runc"):                              false,
	} {
		var value any
		if err := yaml.Unmarshal([]byte(experimentHead+rows), &value); err != nil {
			t.Fatal(err)
		}
		err := s.Validate(value)
		_, parseErr := Parse("x.yaml", []byte(experimentHead+rows))
		if (err == nil) != good || (parseErr == nil) != good {
			t.Errorf("%s: the schema says %v, the parser %v", rows, err, parseErr)
		}
	}
}

// ofMemory is a row whose sandbox has its own 256 MiB.
func ofMemory(runtime string) string {
	return "  - {name: a, title: A, figure: memory, cell: {tool: start, runtime: " + runtime + ", memory: 256Mi}}\n"
}

// An experiment states its loads: its rows do not depend on each other.
func TestExperimentsDoNotSearch(t *testing.T) {
	for _, load := range []string{"ndr", "pdr", "rfc2544", "10%pdr"} {
		text := experimentHead + "  - {name: a, title: A, figure: packet_rate, cell: {tool: frames, transport: veth, face: netdev, runtime: runc, size: 64, load: " + load + "}}\n"
		if _, err := Parse("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "does not search for a rate") {
			t.Errorf("%s: %v", load, err)
		}
	}
}
