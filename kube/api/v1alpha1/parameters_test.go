// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

func TestChainsAreOfTheVersionThatManifestsName(t *testing.T) {
	if got := v1alpha1.GroupVersion.String(); got != manifest.APIVersion {
		t.Errorf("chains are of %s, manifests of %s", got, manifest.APIVersion)
	}
}

func TestPortParametersComeBackAsWritten(t *testing.T) {
	link := plan.Link{Name: "f1u", Transport: "shm", MTU: 1600, Ends: []plan.End{{Function: "cu-up", Port: "f1u"}, {Function: "du", Port: "f1u", MAC: "02:00:00:00:00:01"}}}
	want := v1alpha1.NewPortParameters("f1", "du", "f1u", link, nil)
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v1alpha1.ParsePortParameters(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	if got.End() != 1 {
		t.Errorf("the port is end %d, not 1", got.End())
	}
}

func TestHostilePortParametersAreRefused(t *testing.T) {
	for text, why := range map[string]string{
		`{`:  "not PortParameters",
		`[]`: "not PortParameters",
		`{}`: "take the claim from the template",
		`{"apiVersion":"drayage.io/v1alpha1","kind":"PortParameters"}`:                                                                               "no end of their link",
		`{"apiVersion":"drayage.io/v1alpha1","kind":"PortParameters","function":"du","port":"f1u","link":{"ends":[{"function":"du","port":"f1u"}]}}`: "1 ends: nodes make only links between two ports",
		`{"apiVersion":"drayage.io/v2","kind":"PortParameters"}`:                                                                                     "take the claim from the template",
	} {
		if _, err := v1alpha1.ParsePortParameters([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want an error with %q", text, err, why)
		}
	}
}
