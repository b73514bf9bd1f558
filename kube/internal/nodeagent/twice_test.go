// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubetesting "k8s.io/client-go/testing"
)

// files are the files of the agent, with their modes and what is in them.
func (f *fixture) files() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	for _, dir := range []string{f.agent.o.StateDir, f.agent.o.CDIDir} {
		must(f.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			content := []byte{}
			if info.Mode().IsRegular() {
				content, err = os.ReadFile(path)
			}
			all[path] = fmt.Sprintf("%v %s", info.Mode(), content)
			return err
		}))
	}
	return all
}

// The kubelet may ask again for what is done, in both directions.
func TestPreparingAndRemovingTwiceIsTheSame(t *testing.T) {
	f := newFixture(t)
	must(t, os.MkdirAll(f.agent.o.CDIDir, 0o755)) // as on a node
	clean := f.files()
	du := f.claim("du")
	must(t, f.prepare(du))
	first, link := f.files(), f.link()
	must(t, f.prepare(du))
	if again := f.files(); !reflect.DeepEqual(first, again) {
		t.Errorf("first  %v\nagain  %v", first, again)
	}
	if again := f.link(); !reflect.DeepEqual(link, again) {
		t.Errorf("first  %+v\nagain  %+v", link, again)
	}
	for range 2 {
		must(t, f.agent.unprepare(context.Background(), du.UID))
		for path := range f.files() {
			if _, before := clean[path]; !before && filepath.Base(path) != ".lock" {
				t.Errorf("left: %s", path)
			}
		}
	}
}

// A role without the verb costs the pod nothing but the addresses in its claim;
// the log and an event say which verb that is.
func TestWithoutItsVerbDrayNodeStillPrepares(t *testing.T) {
	f := newFixture(t)
	var log strings.Builder
	f.agent.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	f.client.PrependReactor("update", "resourceclaims", func(a kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceClaim").GroupKind(), "du-ports", field.ErrorList{
			field.Forbidden(field.NewPath("status", "devices"), "changing status.devices requires resource=\"resourceclaims/driver\", verb=…"),
		})
	})
	f.agent.o.PodName = "dray-node-x"
	f.agent.warn = newWarner(&f.agent.o)
	must(t, f.agent.warn.start(t.Context()))
	must(t, f.prepare(f.claim("du")))
	f.agent.reportAll(t.Context())
	if !strings.Contains(log.String(), "associated-node:update on resourceclaims/driver ports.drayage.io") {
		t.Errorf("the log says only %s", log.String())
	}
	for range 3000 {
		all, err := f.client.EventsV1().Events("dray-system").List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(all.Items) == 1 && all.Items[0].Regarding.Name == "dray-node-x" && strings.Contains(all.Items[0].Note, "associated-node:update") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("no event after a minute")
}
