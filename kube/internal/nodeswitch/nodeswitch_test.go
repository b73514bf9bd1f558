// SPDX-License-Identifier: Apache-2.0

package nodeswitch

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// A door's path fits in the address of a socket, however long the link's name is.
func TestDoorsAreShortAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, link := range []string{"a", "a/../../b", strings.Repeat("a", 500)} {
		for end := range 2 {
			path := DoorOf("/run/dray/k8s/switch", link, end)
			if len(path) > 60 || filepath.Dir(path) != "/run/dray/k8s/switch" || seen[path] {
				t.Errorf("%s: %s", link, path)
			}
			seen[path] = true
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, Response{Error: strings.Repeat("x", maxMessage)}); err == nil {
		t.Error("a message without end was written")
	}
	var r Response
	if err := Read(strings.NewReader(`{"error":"`+strings.Repeat("x", maxMessage)+"\"}\n"), &r); err == nil {
		t.Error("a message without end was read")
	}
	if err := Write(&b, Response{Made: []Made{{Name: "a", Faults: map[int]string{1: "b"}}}}); err != nil {
		t.Fatal(err)
	}
	if err := Read(&b, &r); err != nil || r.Made[0].Faults[1] != "b" {
		t.Errorf("%+v, %v", r, err)
	}
}
