// SPDX-License-Identifier: Apache-2.0

package host

import "testing"

// TestParseHfsc: as Debian 12's tc prints it, which is not JSON.
func TestParseHfsc(t *testing.T) {
	q, err := parseRootQdisc([]byte(`[{"kind":"hfsc","handle":"d7a:","root":true,"refcnt":3,"options":{default 1 }}]`))
	must(t, err)
	if err := q.differs(Qdisc{Kind: "hfsc"}); err != nil {
		t.Error(err)
	}
	if _, err := parseRootQdisc([]byte(`[{"kind":"hfsc","options":{whatever}}]`)); err == nil {
		t.Error("accepted what is no JSON")
	}
}
