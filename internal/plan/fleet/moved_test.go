// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
)

func overShm() plan.Link {
	return plan.Link{Name: "f1u", Transport: "shm", Isolation: chain.IsolationLink, MTU: 1600, Ends: []plan.End{
		{Function: "cu", Port: "f1u", Face: chain.FaceNative, Backend: plan.BackendShm},
		{Function: "du", Port: "f1u", Face: chain.FaceDPDK, Backend: plan.BackendShm},
	}}
}

// A link that has moved and come back is the same, and the link given stays as it is.
func TestALinkMovesAndComesBack(t *testing.T) {
	l := overShm()
	there, err := fleet.Moved(l, "bridge")
	if !reflect.DeepEqual(l, overShm()) {
		t.Errorf("the link given: %+v", l)
	}
	if err != nil || there.Transport != "bridge" || there.Ends[0].Backend != plan.BackendNetdev || there.Ends[1].Backend != plan.BackendNetdev {
		t.Errorf("%+v, %v", there, err)
	}
	if back, err := fleet.Moved(there, "shm"); err != nil || !reflect.DeepEqual(back, overShm()) {
		t.Errorf("back: %+v, %v", back, err)
	}
}

func TestWhatALinkCanBecome(t *testing.T) {
	bridge, _ := fleet.Moved(overShm(), "bridge")
	for name, c := range map[string]struct {
		change func(was, is *plan.Link)
		why    string // "": it can
	}{
		"another transport": {func(_, is *plan.Link) { *is = bridge }, ""},
		"another isolation": {func(_, is *plan.Link) { *is = bridge; is.Isolation = chain.IsolationNoSharedMemory }, ""},
		"itself":            {func(_, _ *plan.Link) {}, ""},
		"another MTU too":   {func(_, is *plan.Link) { *is = bridge; is.MTU = 9000 }, "its ports would change"},
		"a tunnel":          {func(_, is *plan.Link) { is.Transport = "vxlan" }, "nodes cannot move a link from shm to vxlan"},
		"with a limit": {func(was, is *plan.Link) {
			*is = bridge
			was.Shape = &chain.Qdisc{Kind: "tbf", Rate: 1e6}
			is.Shape = was.Shape
		}, "its ports have a limit or a qdisc"},
		"a port's limit": {func(was, is *plan.Link) {
			*is = bridge
			was.Ends[1].Shape = &chain.Qdisc{Kind: "tbf", Rate: 1e6}
		}, "its ports have a limit or a qdisc"},
		"another limit": {func(_, is *plan.Link) { is.Shape = &chain.Qdisc{Kind: "tbf", Rate: 1e6} }, "its ports would change"},
		"an interface": {func(was, is *plan.Link) {
			*was = bridge
			was.Ends = []plan.End{{Function: "cu", Port: "f1u", Face: chain.FaceNetdev}, bridge.Ends[1]}
		}, "its port cu.f1u is an interface"},
	} {
		was, is := overShm(), overShm()
		c.change(&was, &is)
		if err := fleet.CanBecome(was, is); (err == nil) != (c.why == "") || err != nil && !strings.HasPrefix(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}
