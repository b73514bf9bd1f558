// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for path, want := range map[string]string{
		"link.requires.latency":  "one-way latency",
		"links.requires.latency": "one-way latency",
		"requires.latency":       "one-way latency",
		"functions.ports.mtu":    "",
		"ends.uplink":            "",
		"":                       "A chain: functions",
	} {
		f, err := Find(path)
		if path == "ends.uplink" {
			if err == nil || !strings.Contains(err.Error(), `no field "ends"`) {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if err != nil || f.Description == "" || !strings.Contains(f.Description, want) {
			t.Errorf("%s: %+v, error %v", path, f, err)
		}
	}
	latency, err := Find("link.requires.latency")
	if err != nil || !strings.Contains(latency.Value, "20us") || latency.Required {
		t.Errorf("%+v, error %v", latency, err)
	}
	face, err := Find("port.face")
	if err != nil || len(face.OneOf) != 3 || face.Default != "netdev" {
		t.Errorf("%+v, error %v", face, err)
	}
	if f, err := Find("link"); err != nil || len(f.Fields) < 8 {
		t.Errorf("%+v, error %v", f, err)
	}
	if _, err := Find("link.latency"); err == nil || !strings.Contains(err.Error(), `link has no field "latency"; it has ends, `) {
		t.Errorf("link.latency: %v", err)
	}
}

// TestEveryPathIsExplained finds a field of the schema without a description.
func TestEveryPathIsExplained(t *testing.T) {
	paths := Paths()
	if len(paths) < 80 {
		t.Errorf("only %d paths", len(paths))
	}
	for _, path := range paths {
		if f, err := Find(path); err != nil || f.Description == "" {
			t.Errorf("%s: %+v, error %v", path, f, err)
		}
	}
}
