// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/test/testenv"
)

// TestADamagedFileOfOneClaimBlocksNoOther walks the files of a prepared claim: the other pod of its
// link starts, what is of no claim is collected, and both pods can end.
func TestADamagedFileOfOneClaimBlocksNoOther(t *testing.T) {
	ctx := context.Background()
	files := map[string]func(a *Agent, uid types.UID) string{
		"the claim": func(a *Agent, uid types.UID) string {
			return filepath.Join(filepath.Dir(a.store.Ports(uid)), "claim.json")
		},
		"its ports":            func(a *Agent, uid types.UID) string { return a.store.Ports(uid) },
		"its directory":        func(a *Agent, uid types.UID) string { return filepath.Dir(a.store.Ports(uid)) },
		"its device":           func(a *Agent, uid types.UID) string { return a.specs.file(uid) },
		"its unwritten device": func(a *Agent, uid types.UID) string { return a.specs.file(uid) + ".new" },
		"the broker's entry": func(a *Agent, _ types.UID) string {
			return filepath.Join(a.links.dir, "links", "link-"+url.PathEscape("ran/f1/f1u")+".json")
		},
	}
	for file, path := range files {
		for name, damage := range testenv.Damages(`{"uid":"claim-du","ports":{"f1u":1}}`) {
			t.Run(file+" is "+name, func(t *testing.T) {
				f := newFixture(t)
				du, cu := f.claim("du"), f.claim("cu-up")
				must(t, f.prepare(du))
				at := path(f.agent, du.UID)
				if _, err := os.Lstat(at); err != nil && file != "its unwritten device" {
					t.Fatal(err)
				}
				damage(t, at)
				if err := f.prepare(cu); err != nil {
					t.Errorf("the other pod: %v", err)
				}
				if err := f.agent.Collect(ctx); err != nil {
					t.Errorf("collect: %v", err)
				}
				if err := f.prepare(du); err != nil { // the kubelet starts again
					t.Errorf("once more: %v", err)
				}
				damage(t, at)
				both := []kubeletplugin.NamespacedObject{{UID: du.UID}, {UID: cu.UID}}
				results, err := f.agent.UnprepareResourceClaims(ctx, both)
				must(t, err)
				for uid, err := range results {
					if err != nil {
						t.Errorf("unprepare %s: %v", uid, err)
					}
				}
				f.nothingLeft()
			})
		}
	}
}

// TestWhatIsSetAsideIsCollected once no pod has the claim, even if the kubelet never unprepares it.
func TestWhatIsSetAsideIsCollected(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t, true)
	du := f.claim("du")
	kept := f.kept(du)
	must(t, f.agent.store.Add(ctx, kept))
	testenv.Damages("")["garbage"](t, filepath.Join(filepath.Dir(f.agent.store.Ports(du.UID)), "claim.json"))
	collected := func() int {
		t.Helper()
		must(t, f.agent.Collect(ctx))
		aside, err := f.agent.store.Aside()
		must(t, err)
		return len(aside)
	}
	if n := collected(); n != 1 {
		t.Errorf("of a pod that runs, %d are kept", n)
	}
	must(t, f.client.ResourceV1().ResourceClaims("ran").Delete(ctx, du.Name, metav1.DeleteOptions{}))
	if n := collected(); n != 0 {
		t.Errorf("without a claim, %d are kept", n)
	}
}

// TestADamagedClaimIsNotTakenForGone: its pod has it no longer, but that of another claim works on.
func TestADamagedClaimIsNotTakenForGone(t *testing.T) {
	f := newFixture(t)
	du, cu := f.claim("du"), f.claim("cu-up")
	must(t, f.prepare(du))
	must(t, f.prepare(cu))
	testenv.Damages("")["garbage"](t, filepath.Join(filepath.Dir(f.agent.store.Ports(du.UID)), "claim.json"))
	must(t, f.agent.Collect(context.Background()))
	var all []claims.Claim
	must(t, f.agent.store.Use(context.Background(), func(c []claims.Claim) error { all = c; return nil }))
	if _, err := os.Stat(f.socket(cu)); err != nil || len(all) != 1 || all[0].UID != cu.UID {
		t.Errorf("%+v, %v", all, err)
	}
}
