// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// TestTransportThatNeedsAFace: one port with the face is enough, and required.
func TestTransportThatNeedsAFace(t *testing.T) {
	transport := &inventory.Transport{Caps: inventory.Caps{Faces: []string{"dpdk", "netdev"}, NeedsFace: "dpdk"}}
	needs := func(faces ...chain.Face) *needs {
		n := &needs{link: &chain.Link{}}
		for _, f := range faces {
			n.ports = append(n.ports, portEnd{port: &chain.Port{Face: f}})
		}
		return n
	}
	if o := faceObstacle(transport, needs(chain.FaceNetdev, chain.FaceDPDK)); o != nil {
		t.Errorf("one of two: %+v", o)
	}
	if o := faceObstacle(transport, needs(chain.FaceNetdev, chain.FaceNetdev)); o == nil || !strings.Contains(o.constraint, "face dpdk") {
		t.Errorf("none of two: %+v", o)
	}
	if o := faceObstacle(transport, needs(chain.FaceNative, chain.FaceDPDK)); o == nil || !strings.Contains(o.constraint, "native") {
		t.Errorf("a face that it does not serve: %+v", o)
	}
}

// TestMachinesOfNamedTransports: for a transport that reaches VMs and that the chain
// names, a VM interface is as good as a dpdk port.
func TestMachinesOfNamedTransports(t *testing.T) {
	transport := &inventory.Transport{Caps: inventory.Caps{Faces: []string{"dpdk"}, NeedsFace: "dpdk", Machines: true}}
	needs := func(transport string, runtimes ...chain.RuntimeName) *needs {
		n := &needs{link: &chain.Link{Transport: transport}, functions: map[string]*chain.Function{}}
		for _, r := range runtimes {
			n.functions[string(r)] = &chain.Function{Runtime: r}
			n.ports = append(n.ports, portEnd{end: chain.End{Function: string(r)}, port: &chain.Port{Face: chain.FaceNetdev}})
		}
		return n
	}
	if o := faceObstacle(transport, needs("x", chain.RuntimeVM, chain.RuntimeVM)); o != nil {
		t.Errorf("two machines: %+v", o)
	}
	if o := faceObstacle(transport, needs("x", chain.RuntimeVM, chain.RuntimeRunc)); o == nil || !strings.Contains(o.constraint, "netdev") {
		t.Errorf("a machine and a container: %+v", o)
	}
	if o := faceObstacle(transport, needs(chain.TransportAuto, chain.RuntimeVM, chain.RuntimeVM)); o == nil {
		t.Error("auto would keep a CPU busy")
	}
	transport.Caps.Faces = []string{"dpdk", "netdev"}
	beside := needs(chain.TransportAuto, chain.RuntimeVM, chain.RuntimeProcess)
	beside.ports[1].port.Face = chain.FaceDPDK
	if o := faceObstacle(transport, beside); o == nil || !strings.Contains(o.constraint, "virtual machine") {
		t.Errorf("auto would take interfaces to join a machine and an application: %+v", o)
	}
	beside.link.Transport = "x"
	if o := faceObstacle(transport, beside); o != nil {
		t.Errorf("a machine and an application: %+v", o)
	}
	transport.Caps.Faces = []string{"dpdk"}
	transport.Caps.Machines = false
	if o := faceObstacle(transport, needs("x", chain.RuntimeVM, chain.RuntimeVM)); o == nil {
		t.Error("a transport that reaches no machines was taken")
	}
}
