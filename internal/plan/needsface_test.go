// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/inventory"
)

// TestTransportThatNeedsAFace: one port with the face is enough, none is not.
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
