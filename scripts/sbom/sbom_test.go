// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const root = "../.."

var describeOnce = sync.OnceValues(func() ([]byte, error) { return describe(root) })

// built returns the bill of what make build made.
func built(t *testing.T) []byte {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, "bin/dray")); err != nil {
		if os.Getenv("DRAY_TEST_STRICT") == "1" {
			t.Fatal("needs the programs in bin/: run make build")
		}
		t.Skip("needs the programs in bin/: run make build")
	}
	text, err := describeOnce()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestBillFollowsTheSchema(t *testing.T) {
	text := built(t)
	schema := compile(t)
	if err := validate(t, schema, text); err != nil {
		t.Error(err)
	}
	for good, bad := range map[string]string{
		`"bomFormat": "CycloneDX"`: `"bomFormat": "SPDX"`,
		`"id": "Apache-2.0"`:       `"id": "Apache"`,
		`"scope": "optional"`:      `"scope": "sometimes"`,
		`"timestamp": "`:           `"timestamp": "on `,
		`"alg": "SHA-256"`:         `"alg": "h1"`,
	} {
		if !bytes.Contains(text, []byte(good)) {
			t.Errorf("the bill has no %s", good)
		}
		if validate(t, schema, bytes.Replace(text, []byte(good), []byte(bad), 1)) == nil {
			t.Errorf("the schema permits %s", bad)
		}
	}
}

func TestBillIsComplete(t *testing.T) {
	text := built(t)
	if again, err := describe(root); err != nil || !bytes.Equal(text, again) {
		t.Errorf("two bills of the same files differ (%v)", err)
	}
	bom := new(cdx.BOM)
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatal(err)
	}
	components := map[string]cdx.Component{product: *bom.Metadata.Component}
	named := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		components[c.BOMRef] = c
		named[c.Name] = c
		if c.Version == "" && !strings.HasPrefix(c.PackageURL, "pkg:deb/debian/") {
			t.Errorf("%s has no version", c.BOMRef)
		}
	}
	for _, d := range *bom.Dependencies {
		for _, ref := range append([]string{d.Ref}, *d.Dependencies...) {
			if _, known := components[ref]; !known {
				t.Errorf("%s is made of %s, which is no component", d.Ref, ref)
			}
		}
	}
	for _, name := range []string{"dray", "draygen", "libdray", "std", "github.com/spf13/cobra", "libc6", "libc6-dev", "runc"} {
		if _, known := named[name]; !known {
			t.Errorf("there is no %s", name)
		}
	}
	if ovs := named["openvswitch-switch"]; ovs.Scope != cdx.ScopeOptional {
		t.Errorf("openvswitch-switch is %q", ovs.Scope)
	}
	if _, err := os.Stat(filepath.Join(root, "bin/dray-vnf")); err == nil && named["libdpdk-dev"].Version == "" {
		t.Error("there are no headers of DPDK")
	}
	cobra := named["github.com/spf13/cobra"]
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := hex.DecodeString((*cobra.Hashes)[0].Value)
	if err != nil || !bytes.Contains(sums, []byte(cobra.Name+" "+cobra.Version+" h1:"+base64.StdEncoding.EncodeToString(sum)+"\n")) {
		t.Errorf("go.sum does not have the checksum of %+v (%v)", cobra, err)
	}
	if id := (*cobra.Licenses)[0].License.ID; id != "Apache-2.0" {
		t.Errorf("cobra has the licence %s", id)
	}
}

func TestRecognise(t *testing.T) {
	const (
		two   = "Redistributions in binary form must reproduce the\n above copyright notice"
		three = two + " ... may be used to\nendorse or promote products derived from"
		mit   = "Permission is hereby granted, free of charge, to"
	)
	for text, want := range map[string]string{
		two: "BSD-2-Clause", three: "BSD-3-Clause", mit: "MIT", "http://www.apache.org/licenses/ " + mit: "Apache-2.0 MIT", "All rights reserved.": "",
	} {
		if got := strings.Join(recognise(text), " "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if _, err := licencesOf(t.TempDir()); err == nil {
		t.Error("a module without a licence passes")
	}
}

// compile reads the schema, which the library's module brings.
func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	const base = "http://cyclonedx.org/schema/"
	folder, err := output(".", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for name, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text, err := os.ReadFile(filepath.Join(folder, "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(base+name, unmarshal(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile(base + "bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, text []byte) error {
	t.Helper()
	return schema.Validate(unmarshal(t, text))
}

func unmarshal(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
