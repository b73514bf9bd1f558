// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
)

func TestHostMetrics(t *testing.T) {
	figures := []node.Figures{
		{Found: node.Found{Chain: "c", Condition: node.Up},
			Functions: []node.FunctionStatus{
				{Name: "a", Phase: node.PhaseRestarting, Restarts: 3, Exit: 137}, {Name: "b", Phase: node.PhaseNone},
				{Name: "d", Phase: node.PhaseFailed, Error: "no such program"},
			},
			Interfaces: []node.Interface{
				{Link: "ab", Function: "a", Port: "p0", Traffic: &host.Traffic{Carrier: true,
					Sent: host.Counts{Packets: 1, Bytes: 2, Dropped: 3, Errors: 4}, Received: host.Counts{Packets: 5, Bytes: 6, Dropped: 7, Errors: 8}}},
				{Link: "ab", Function: "b", Port: "p0"},
			}},
		{Found: node.Found{Chain: "old", Condition: node.Lost}}, {Found: node.Found{Chain: "theirs", Condition: node.Foreign}},
	}
	text, err := metricsText(NewHostCollector(func() ([]node.Figures, error) { return figures, nil }))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`dray_chain_up{chain="c"} 1`, `dray_chain_up{chain="old"} 0`,
		`dray_function_phase{chain="c",function="a",phase="restarting"} 1`, `dray_function_phase{chain="c",function="a",phase="running"} 0`,
		`dray_function_phase{chain="c",function="b",phase="no_command"} 1`, `dray_function_phase{chain="c",function="d",phase="failed"} 1`,
		`dray_function_restarts_total{chain="c",function="a"} 3`, `dray_function_exit_status{chain="c",function="a"} 137`,
		`dray_interface_up{chain="c",link="ab",port="a.p0"} 1`, `dray_interface_up{chain="c",link="ab",port="b.p0"} 0`,
		`dray_interface_sent_packets_total{chain="c",link="ab",port="a.p0"} 1`, `dray_interface_sent_bytes_total{chain="c",link="ab",port="a.p0"} 2`,
		`dray_interface_sent_dropped_packets_total{chain="c",link="ab",port="a.p0"} 3`, `dray_interface_sent_errors_total{chain="c",link="ab",port="a.p0"} 4`,
		`dray_interface_received_packets_total{chain="c",link="ab",port="a.p0"} 5`, `dray_interface_received_bytes_total{chain="c",link="ab",port="a.p0"} 6`,
		`dray_interface_received_dropped_packets_total{chain="c",link="ab",port="a.p0"} 7`, `dray_interface_received_errors_total{chain="c",link="ab",port="a.p0"} 8`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("lacks %s\n%s", want, text)
		}
	}
	for _, none := range []string{`theirs`, `exit_status{chain="c",function="b"}`, `exit_status{chain="c",function="d"}`, `bytes_total{chain="c",link="ab",port="b.p0"}`} {
		if strings.Contains(text, none) {
			t.Errorf("has %s\n%s", none, text)
		}
	}
}

// A state directory that cannot be read is no host without chains.
func TestHostMetricsOfAnUnreadableHost(t *testing.T) {
	unreadable := errors.New("unreadable")
	if _, err := metricsText(NewHostCollector(func() ([]node.Figures, error) { return nil, unreadable })); !errors.Is(err, unreadable) && !strings.Contains(err.Error(), "unreadable") {
		t.Error(err)
	}
}
