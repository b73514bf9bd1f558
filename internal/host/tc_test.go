// SPDX-License-Identifier: Apache-2.0

package host

import "testing"

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
