// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

// exported is the name and the spec of the object for a chain file.
func exported(t *testing.T, file string, text []byte) (string, []byte) {
	t.Helper()
	m, err := manifest.Make(file, text)
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Metadata struct{ Name string }
		Spec     map[string]any
	}
	if err := yaml.Unmarshal([]byte(m.YAML), &object); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return object.Metadata.Name, spec
}

// bare is a chain without what a pod decides, and without positions.
func bare(t *testing.T, c *chain.Chain) string {
	t.Helper()
	data, err := json.Marshal(c) // leaves out positions
	if err != nil {
		t.Fatal(err)
	}
	var copied chain.Chain
	if err := json.Unmarshal(data, &copied); err != nil {
		t.Fatal(err)
	}
	for i, f := range copied.Functions {
		copied.Functions[i] = chain.Function{Name: f.Name, Ports: f.Ports}
	}
	for i := range copied.Links {
		copied.Links[i].HasLoad = c.Links[i].HasLoad
	}
	text, err := json.MarshalIndent(copied, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// native are the chain files that can be exported: examples, and examples whose ports
// are made native.
func native(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../../../examples/*.yaml")
	more, err2 := filepath.Glob("../../../examples/*/*.yaml")
	if err != nil || err2 != nil || len(files) == 0 {
		t.Fatal(len(files), err, err2)
	}
	usable := map[string][]byte{}
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{file: text, file + " made native": madeNative(t, text)} {
			if _, err := manifest.Make(name, text); err == nil {
				usable[name] = text
			}
		}
	}
	return usable
}

// madeNative is a chain file with native ports and without commands.
func madeNative(t *testing.T, text []byte) []byte {
	t.Helper()
	file := map[string]any{}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, f := range file["functions"].([]any) {
		f := f.(map[string]any)
		delete(f, "command")
		for _, p := range f["ports"].([]any) {
			p.(map[string]any)["face"] = "native"
		}
	}
	changed, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func TestExportedChainsComeBack(t *testing.T) {
	files := native(t)
	if len(files) < 8 {
		t.Errorf("only %d files can be exported", len(files))
	}
	for file, text := range files {
		want, err := chain.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := manifest.Parse(exported(t, file, text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if g, w := bare(t, got), bare(t, want); g != w {
			t.Errorf("%s: got\n%s\nwant\n%s", file, g, w)
		}
	}
}

func TestFunctionsAreExternal(t *testing.T) {
	c, err := manifest.Parse("c", []byte(`{"functions":[{"name":"a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if f := c.Functions[0]; c.Name != "c" || f.Runtime != chain.RuntimeExternal || f.External == nil {
		t.Errorf("chain %s, function %+v", c.Name, f)
	}
}

func TestFaultsNameFieldsOfTheObject(t *testing.T) {
	const spec = `{"functions":[
	  {"name":"a","ports":[{"name":"p0","face":"native","mtu":9000},{"name":"p1","face":"native"}]},
	  {"name":"a","ports":[{"name":"p0","face":"native","ip":"10.0.0.300/24"}]}],
	 "links":[{"name":"l","ends":["a.p0","b.p9"],"requires":{"latency":"25","mtu":20}},
	  {"name":"m","ends":["a.p1","a.p0"],"colour":"red"}]}`
	_, err := manifest.Parse("Chain", []byte(spec))
	var got manifest.Invalid
	if !reflect.TypeOf(err).AssignableTo(reflect.TypeOf(got)) {
		t.Fatalf("%T: %v", err, err)
	}
	for _, want := range []string{
		`metadata.name: a chain's name cannot be "Chain"; use 1 to 32 of a-z`,
		`spec.functions[1].name: two functions are called "a", the first at spec.functions[0].name; rename one of the two`,
		`spec.functions[1].ports[0].ip: ip cannot be "10.0.0.300/24"; write an address`,
		`spec.links[0].ends[1]: there is no port "b.p9"; `,
		`spec.links[0].requires.latency: `,
		`spec.links[0].requires.mtu: mtu cannot be 20; write 68 to 65535`,
		`spec.links[1].ends[1]: the port a.p0 is already on the link at spec.links[0]; give "a" another port`,
		`spec.links[1].colour: unknown field "colour" in a link; `,
	} {
		if !strings.Contains("\n"+err.Error(), "\n"+want) {
			t.Errorf("no line begins with %s in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), " line ") {
		t.Errorf("a line of the generated text is named:\n%v", err)
	}
}

// The schema of objects cannot count instances, so the limits of claims are checked here.
func TestInstancesFitIntoAClaim(t *testing.T) {
	const spec = `{"functions":[{"name":"lb","ports":[%s]},{"name":"worker","instances":%d,"ports":[%s]}],"links":[%s]}`
	of := func(ports, instances int) []byte {
		var p, l []string
		for i := range ports {
			p = append(p, fmt.Sprintf(`{"name":"p%d","face":"native"}`, i))
			l = append(l, fmt.Sprintf(`{"name":"l%d","ends":["lb.p%[1]d","worker.p%[1]d"]}`, i))
		}
		return fmt.Appendf(nil, spec, strings.Join(p, ","), instances, strings.Join(p, ","), strings.Join(l, ","))
	}
	c, err := manifest.Parse("c", of(2, 16))
	if err != nil || len(c.Links) != 32 {
		t.Errorf("32 ports: %v", err)
	}
	_, err = manifest.Parse("c", of(3, 11))
	for _, want := range []string{
		"spec.functions[0]: 33 ports are more than the limit of 32 in Kubernetes; split the chain",
		"spec.functions[1]: 33 ports of all instances are more than the limit of 32 in Kubernetes; split the chain",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("33 ports: %v\nwant %s", err, want)
		}
	}
}

// The text of an object is a manifest of the same chain.
func TestTextOfAnObject(t *testing.T) {
	for file, text := range native(t) {
		name, spec := exported(t, file, text)
		written, err := manifest.Text(name, spec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readChain(file, []byte(written))
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, written)
		}
		want, err := manifest.Parse(name, spec)
		if err != nil {
			t.Fatal(err)
		}
		if bare(t, got) != bare(t, want) || strings.Contains(written, "{") {
			t.Errorf("%s became\n%s", file, written)
		}
	}
	if _, err := manifest.Text("f1", nil); err == nil {
		t.Error("a manifest without a spec")
	}
}

func TestWhatIsNoObject(t *testing.T) {
	for _, spec := range []string{"", "null", "[]", "3", `"x"`, `{"functions": 3}`, `{"functions": [7, null, {}]}`, `{"links": {"a": []}}`} {
		if _, err := manifest.Parse("c", []byte(spec)); err == nil || !strings.HasPrefix(err.Error(), "spec") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"functions":[{"name":"a","ports":[{"name":"p0","face":"native"}]}],"links":[]}`))
	f.Fuzz(func(t *testing.T, spec []byte) {
		c, err := manifest.Parse("c", spec)
		if (c == nil) == (err == nil) {
			t.Errorf("chain %v, error %v", c, err)
		}
	})
}
