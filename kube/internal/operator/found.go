// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// found is the last placement that was searched for each chain, and for what. A search can
// take seconds, a chain has an event whenever one of its pods changes, and all chains share
// one worker.
type found struct {
	mu   sync.Mutex
	last map[types.NamespacedName]finding
}

// finding is the result of a search. It depends on nothing but what was asked.
type finding struct {
	asked  [sha256.Size]byte
	placed fleet.Placed
	// freed says that there would be a placement if no pod ran.
	freed bool
}

// question is all that a search depends on: the rest of a site follows from that.
type question struct {
	UID           types.UID
	Generation    int64 // of the spec
	Nodes         []fleet.Node
	Machines      []fleet.Machine
	Fixed, Before map[string]string
}

// place is fleet.Site.Keep, unless the last answer still holds.
func (f *found) place(c *v1alpha1.Chain, site *fleet.Site, fixed, before map[string]string) finding {
	q := question{c.UID, c.Generation, slices.Clone(site.Nodes), slices.Clone(site.Machines), fixed, before}
	of := client.ObjectKeyFromObject(c)
	asked, err := q.sum()
	f.mu.Lock()
	last, known := f.last[of]
	f.mu.Unlock()
	if known && err == nil && last.asked == asked {
		return last
	}
	now := finding{asked: asked, placed: site.Keep(fixed, before)}
	now.freed = now.placed.Refusal != "" && len(fixed) > 0 && site.Place(nil).Refusal == ""
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = map[types.NamespacedName]finding{}
	}
	f.last[of] = now
	return now
}

func (f *found) forget(of types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, of)
}

// sum is the same for nodes and machines in any order, in which a cache lists them.
func (q question) sum() (sum [sha256.Size]byte, err error) {
	slices.SortFunc(q.Nodes, func(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(q.Machines, func(a, b fleet.Machine) int { return cmp.Compare(a.Name, b.Name) })
	text, err := json.Marshal(q)
	return sha256.Sum256(text), err
}
