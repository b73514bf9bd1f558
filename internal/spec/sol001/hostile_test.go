// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// small is a descriptor that imports a file, and begins with that text.
func small(imports string) string {
	return "tosca_definitions_version: tosca_simple_yaml_1_3\nimports: [" + imports + "]\n" + vdu
}

const vdu = "topology_template:\n  node_templates:\n    a:\n      type: tosca.nodes.nfv.Vdu.Compute\n"

// TestHostileDescriptors holds what is refused, and what is left out, against the
// message.
func TestHostileDescriptors(t *testing.T) {
	const outside = "it is outside of the descriptor's folder"
	for name, c := range map[string]struct {
		files map[string]string // the first of d.yaml, TOSCA-Metadata/TOSCA.meta is what is named
		want  string
	}{
		"import of a parent":     {map[string]string{"d.yaml": small("../../etc/passwd")}, outside},
		"import of a root":       {map[string]string{"d.yaml": small("/etc/passwd")}, outside},
		"import of a folder":     {map[string]string{"d.yaml": small("sub"), "sub/x": ""}, "sub is a directory"},
		"import from a server":   {map[string]string{"d.yaml": small("'https://example.org/x.yaml'")}, "imports come from files only"},
		"import without a name":  {map[string]string{"d.yaml": small("{file: [a]}")}, "this import names no file"},
		"import of other text":   {map[string]string{"d.yaml": small("x.yaml"), "x.yaml": "a: ["}, `"x.yaml" is not read: `},
		"imports in a circle":    {map[string]string{"d.yaml": small("e.yaml"), "e.yaml": small("d.yaml, e.yaml")}, ""},
		"many imports":           {map[string]string{"d.yaml": small(strings.Repeat("x, ", 10) + numbered(100)), "x": small("")}, ""},
		"too many imports":       {manyFiles(maxFiles+1, 0), "a descriptor has more than 64 files"},
		"large imports":          {manyFiles(5, 900<<10), "a descriptor and its imports have at most 4194304 bytes"},
		"types in a circle":      {map[string]string{"d.yaml": "node_types: {x: {derived_from: y}, y: {derived_from: x}}\n" + small("") + "    b: {type: x}\n"}, "b, of the type x, has no counterpart"},
		"a VNF made of itself":   {map[string]string{"d.yaml": "node_types: {x: {derived_from: tosca.nodes.nfv.VNF}}\n" + small("") + "    b: {type: x}\n  substitution_mappings: {node_type: x}\n"}, ""},
		"an alias of itself":     {map[string]string{"d.yaml": "x: &x [*x]\n" + small("")}, "refers to a value that contains it"},
		"a bomb":                 {map[string]string{"d.yaml": bomb() + small("")}, "more than 100000 values"},
		"a deep value":           {map[string]string{"d.yaml": "x: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n" + small("")}, "nested more than 32 deep"},
		"a large file":           {map[string]string{"d.yaml": small("") + "# " + strings.Repeat("x", 1<<20)}, "larger than the limit"},
		"two documents":          {map[string]string{"d.yaml": small("") + "---\n" + small("")}, "more than one YAML document"},
		"an empty file":          {map[string]string{"d.yaml": ""}, "the file is empty; name an NSD or VNFD"},
		"only bad imports":       {map[string]string{"d.yaml": strings.Replace(small("../../etc/passwd"), vdu, "topology_template: {}\n", 1)}, "d.yaml:2:11: \"../../etc/passwd\" is not read"},
		"a key twice":            {map[string]string{"d.yaml": strings.Replace(small(""), vdu, "topology_template: {}\n"+vdu, 1)}, "\"topology_template\" appears twice; the first is read; remove one"},
		"a list":                 {map[string]string{"d.yaml": "[a]"}, "this is no service template"},
		"a chain file":           {map[string]string{"d.yaml": "apiVersion: drayage/v1\nkind: Chain\n"}, "no tosca_definitions_version"},
		"no nodes":               {map[string]string{"d.yaml": "tosca_definitions_version: x\n"}, "no VDU and no VNF"},
		"wrong forms":            {map[string]string{"d.yaml": small("") + "      properties: [1]\n      capabilities: 2\n      requirements: {a: b}\n"}, "requirements is no list"},
		"a million instances":    {map[string]string{"d.yaml": small("") + "      properties: {vdu_profile: {min_number_of_instances: 1000000}}\n"}, "more than 32 instances; the chain has 32"},
		"an input of itself":     {map[string]string{"d.yaml": small("") + "      properties: {description: {get_input: x}}\n  inputs: {x: {default: {get_input: x}}}\n"}, "description cannot be read"},
		"a package":              {map[string]string{"TOSCA-Metadata/TOSCA.meta": "CSAR-Version: 1.1\r\nentry-definitions: sub/../d.yaml\r\n", "d.yaml": small("")}, ""},
		"a package's outside":    {map[string]string{"TOSCA-Metadata/TOSCA.meta": "Entry-Definitions: ../../etc/passwd\n", "d.yaml": small("")}, "outside of the package"},
		"a package's root":       {map[string]string{"TOSCA-Metadata/TOSCA.meta": "Entry-Definitions: /etc/passwd\n", "d.yaml": small("")}, "outside of the package"},
		"a package's absence":    {map[string]string{"TOSCA-Metadata/TOSCA.meta": "Entry-Definitions: e.yaml\n", "d.yaml": small("")}, "e.yaml: "},
		"a package without meta": {map[string]string{"vnf/one.yaml": small(""), "top.yml": small("vnf/one.yaml")}, ""},
		"a package of two":       {map[string]string{"vnf/one.yaml": small(""), "top.yml": small(""), "other.yaml": small("")}, "several YAML files"},
		"a package of none":      {map[string]string{"vnf/one.yaml": small("")}, "it is no CSAR"},
		"a package without name": {map[string]string{"TOSCA-Metadata/TOSCA.meta": "CSAR-Version: 1.1\n", "d.yaml": small("")}, "names no Entry-Definitions"},
		"a long meta":            {map[string]string{"TOSCA-Metadata/TOSCA.meta": strings.Repeat("x", maxMeta+1), "d.yaml": small("")}, "larger than the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			if text, ok := c.files["d.yaml"]; ok && c.files["TOSCA-Metadata/TOSCA.meta"] == "" {
				t.Run("file", func(t *testing.T) { says(t, filepath.Join(unpacked(t, c.files), "d.yaml"), c.want) })
				if len(c.files) > 1 || text == "" {
					return // a package of several begins with another file
				}
			}
			t.Run("folder", func(t *testing.T) { says(t, unpacked(t, c.files), c.want) })
			t.Run("package", func(t *testing.T) { says(t, packed(t, c.files), c.want) })
		})
	}
}

// says imports a descriptor, and finds want in its error or notes; "" is neither an error
// nor a note about an import.
func says(t *testing.T, file, want string) {
	t.Helper()
	var text strings.Builder
	src, err := Open(file)
	if err == nil {
		var got *Imported
		got, err = Import(src, "")
		if err == nil {
			for _, n := range got.LeftOut {
				text.WriteString(n.String() + "\n")
			}
		}
		defer src.Close()
	}
	if err != nil {
		text.WriteString(err.Error())
	}
	if !strings.Contains(text.String(), want) || want == "" && (err != nil || strings.Contains(text.String(), "is not read")) {
		t.Errorf("want %q in:\n%s", want, text.String())
	}
}

func unpacked(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func packed(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range files {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "d.csar")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func numbered(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("etsi_nfv_sol001_%d.yaml", i%10)
	}
	return strings.Join(all, ", ")
}

// manyFiles is a descriptor that imports n files, with that many bytes of comments in each.
func manyFiles(n, comment int) map[string]string {
	files := map[string]string{}
	var names []string
	for i := range n {
		name := fmt.Sprintf("f%d.yaml", i)
		files[name] = small("") + "# " + strings.Repeat("x", comment) + "\n"
		names = append(names, name)
	}
	files["d.yaml"] = small(strings.Join(names, ", "))
	return files
}

// bomb is a value that unfolds into 10^9 values.
func bomb() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return text
}

// TestLargeDescriptorsEndInTime reads files of as many parts as the limits allow.
func TestLargeDescriptorsEndInTime(t *testing.T) {
	many := func(begin, part string) string {
		var b strings.Builder
		b.WriteString(begin)
		for i := 0; b.Len() < 400<<10; i++ {
			fmt.Fprintf(&b, part, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"VDUs of one name":   many(small(""), "    a%[1]d___________________________________________x: {type: tosca.nodes.nfv.Vdu.Compute}\n"),
		"ports of one VDU":   many(small(""), "    cp__%d: {type: tosca.nodes.nfv.VduCp, requirements: [virtual_binding: a]}\n"),
		"ports of one link":  many(small("")+"    vl: {type: tosca.nodes.nfv.VnfVirtualLink}\n", "    a_%d: {type: tosca.nodes.nfv.VduCp, requirements: [virtual_binding: a, virtual_link: vl]}\n"),
		"links without ends": many(small(""), "    vl%d: {type: tosca.nodes.nfv.VnfVirtualLink}\n"),
		"exposed ports":      many(small("")+"  substitution_mappings:\n    requirements:\n", "      x%[1]d: [a_%[1]d, virtual_link]\n"),
		"many instances":     many(small(""), "    b%d: {type: tosca.nodes.nfv.Vdu.Compute, properties: {vdu_profile: {min_number_of_instances: 32}}}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			src, err := Text("d.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			before := testenv.ProcessorTime(t)
			got, err := Import(src, "")
			if took := testenv.ProcessorTime(t) - before; took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if (got == nil) == (err == nil) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestLinksOutOfAFolder: a symbolic link in an unpacked package shows no other file, and
// a pipe does not block.
func TestLinksOutOfAFolder(t *testing.T) {
	secret := filepath.Join(unpacked(t, map[string]string{"secret": "password: 1234"}), "secret")
	dir := unpacked(t, map[string]string{"d.yaml": small("link.yaml, pipe.yaml")})
	if err := os.Symlink(secret, filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, filepath.Join(dir, "d.yaml"), "a symbolic link leads out of the folder")
	says(t, filepath.Join(dir, "d.yaml"), "it is no regular file")
}

// TestFlavours chooses among the deployment flavours of a package.
func TestFlavours(t *testing.T) {
	src, err := Open("testdata/tacker/practical")
	if err != nil {
		t.Fatal(err)
	}
	for flavour, want := range map[string]string{"": "choose one with --flavour: ha or scalable", "big": `no deployment flavour "big"`} {
		if _, err := Import(src, flavour); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("flavour %q: %v, want %q", flavour, err, want)
		}
	}
	src, err = Open("testdata/nsd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Import(src, "big"); err == nil || !strings.Contains(err.Error(), "an NSD has no deployment flavours") {
		t.Errorf("flavour of an NSD: %v", err)
	}
}
