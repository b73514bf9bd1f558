// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/all"
	"github.com/drayage/dray/internal/spec/chain"
)

// largestMTU is an interface's largest MTU (Linux, ETH_MAX_MTU).
const largestMTU = 65535

// withTransport is a chain with one link on a transport, and ports with an MTU.
func withTransport(name string, mtu int) []byte {
	return fmt.Appendf(nil, `
apiVersion: drayage/v1
kind: Chain
name: c
functions:
  - {name: a, ports: [{name: p, mtu: %[2]d}]}
  - {name: b, ports: [{name: p, mtu: %[2]d}]}
links:
  - {name: l, ends: [a.p, b.p], transport: %[1]s}
`, name, mtu)
}

func TestEveryDriverCanBeNamed(t *testing.T) {
	for _, d := range all.All() {
		if _, err := chain.Parse("", withTransport(d.Name(), 1500)); err != nil {
			t.Error(err)
		}
	}
}

func TestParserKnowsTheMTUOfEveryDriver(t *testing.T) {
	for _, d := range all.All() {
		most := min(d.Caps().MaxMTU, largestMTU)
		if _, err := chain.Parse("", withTransport(d.Name(), most)); err != nil {
			t.Errorf("%s carries %d: %v", d.Name(), most, err)
		}
		if _, err := chain.Parse("", withTransport(d.Name(), most+1)); err == nil {
			t.Errorf("%s carries %d at most, but the parser accepts more", d.Name(), most)
		}
	}
}

func TestParserAndHostKnowTheSameQdiscs(t *testing.T) {
	var schema struct {
		Defs struct {
			QoS struct {
				Properties struct {
					Qdisc struct {
						Enum []string `json:"enum"`
					} `json:"qdisc"`
				} `json:"properties"`
			} `json:"qos"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(chain.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	got, want := schema.Defs.QoS.Properties.Qdisc.Enum, append(host.QdiscKinds(), "prio", "slot") // not of the kernel
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the parser knows %v, the host %v", got, want)
	}
}
