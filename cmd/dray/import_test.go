// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

const descriptor = "../../examples/sol001"

// TestImportAndExport turns a descriptor into a chain, and that into a descriptor.
func TestImportAndExport(t *testing.T) {
	var out, errs bytes.Buffer
	if err := run(context.Background(), []string{"import", descriptor}, &out, &errs); err != nil {
		t.Fatal(err)
	}
	c, err := chain.Parse("imported", out.Bytes())
	if err != nil || c.Name != "userplane" || len(c.Functions) != 3 || len(c.Links) != 2 {
		t.Fatalf("%v\n%s", err, out.String())
	}
	holds(t, "standard error", errs.String(), "dray: warning: the chain file differs from its source:\n", descriptor+"/Definitions/userplane-nsd.yaml:53:89: virtual link f1u: qos.priority has no counterpart")

	file := filepath.Join(t.TempDir(), "chain.yaml")
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	errs.Reset()
	out.Reset()
	if err := run(context.Background(), []string{"export", "--sol001", file}, &out, &errs); err != nil {
		t.Fatal(err)
	}
	holds(t, "the descriptor", out.String(), "tosca_definitions_version: tosca_simple_yaml_1_3\n", "latency: 2 ms\n")
	holds(t, "standard error", errs.String(), "dray: warning: the descriptor differs from its source:\n", file+":6:5: function du: ")
}

func TestTheWrongNumberOfArgumentsIsSaid(t *testing.T) {
	for argv, want := range map[string]string{
		"import":           "an argument is missing; usage: dray import FILE",
		"import a b c":     `the argument "b" is too many; usage: `,
		"trace":            "an argument is missing; usage: ",
		"status a b":       `the argument "b" is too many; usage: `,
		"version x":        `the argument "x" is too many; usage: `,
		"import /nonexist": "descriptor /nonexist: no such file or directory; name a file",
	} {
		err := run(context.Background(), strings.Fields(argv), io.Discard, io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("dray %s: %v, want %s", argv, err, want)
		}
	}
}

// TestConversionsInJSON: the document has the text, and what was left out.
func TestConversionsInJSON(t *testing.T) {
	for argv, text := range map[string]string{
		"import " + descriptor:                         "file",
		"export --sol001 ../../examples/f1-split.yaml": "descriptor",
	} {
		var out, errs bytes.Buffer
		if err := run(context.Background(), append(strings.Fields(argv), "--json"), &out, &errs); err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		notes, _ := got["left_out"].([]any)
		if body, _ := got[text].(string); len(notes) == 0 || !strings.Contains(body, "\n") || errs.Len() > 0 {
			t.Errorf("%s: %s, standard error %q", argv, out.String(), errs.String())
		}
	}
}

func TestConversionsRefuse(t *testing.T) {
	for argv, code := range map[string]int{
		"export ../../examples/f1-split.yaml":                               exitUsage,
		"export --sol001 --kubernetes ../../examples/f1-split.yaml":         exitUsage,
		"export --sol001 " + descriptor + "/Definitions/userplane-nsd.yaml": exitError,
		"import ../../examples/f1-split.yaml":                               exitError,
		"import absent.yaml":                                                exitError,
		"import --flavour big " + descriptor:                                exitError,
	} {
		err := run(context.Background(), strings.Fields(argv), io.Discard, io.Discard)
		if got := exitCode(err, io.Discard); got != code {
			t.Errorf("dray %s: exit code %d, want %d: %v", argv, got, code, err)
		}
	}
}
