// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"strings"
	"testing"
)

// TestParseHfsc parses Debian 12's tc output, which is not JSON.
func TestParseHfsc(t *testing.T) {
	all, err := parseQdiscs([]byte(`[{"kind":"hfsc","handle":"d7a:","root":true,"refcnt":3,"options":{default 1 }},` +
		`{"kind":"sfq","handle":"d7b:","parent":"d7a:1","options":{"limit":127}}]`))
	must(t, err)
	if err := rootOf(all).differs(Qdisc{Kind: "hfsc"}, ownHandle); err != nil {
		t.Error(err)
	}
	if err := checkChild(all, &Qdisc{Kind: "sfq", Limit: 127}); err != nil {
		t.Error(err)
	}
	for _, other := range []Qdisc{{Kind: "sfq", Limit: 128}, {Kind: "codel"}} {
		if err := checkChild(all, &other); err == nil {
			t.Errorf("took an sfq of 127 for %+v", other)
		}
	}
	if err := checkChild(all[:1], &Qdisc{Kind: "sfq"}); err == nil {
		t.Error("a child that is not there was read back")
	}
	if _, err := parseQdiscs([]byte(`[{"kind":"hfsc","options":{whatever}}]`)); err == nil {
		t.Error("accepted invalid JSON")
	}
}

// TestAWireNeedsItsKernel: only an unknown qdisc, classifier or action is what a kernel lacks.
func TestAWireNeedsItsKernel(t *testing.T) {
	for said, lacks := range map[string]bool{
		"Error: TC classifier not found.; We have an error talking to the kernel":              true,
		"Error: Failed to load TC action module.; We have an error talking to the kernel":      true,
		"Error: Specified qdisc kind is unknown.":                                              true,
		"RTNETLINK answers: No buffer space available; We have an error talking to the kernel": false,
		"Cannot find device \"gone\"":                                                          false,
	} {
		err := lacksRedirect(&HelperError{Command: "tc filter add", Fault: Fault{Why: "exit status 2"}, Said: said})
		if errors.Is(err, ErrUnsupported) != lacks || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v", said, err)
		}
	}
	if err := lacksRedirect(nil); err != nil {
		t.Error(err)
	}
}
