// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

func TestInitWritesAChain(t *testing.T) {
	for face := range faceTexts {
		for runtime := range runtimeTexts {
			var out bytes.Buffer
			if err := run(context.Background(), []string{"init", "-", "--face", face, "--runtime", runtime}, &out, io.Discard); err != nil {
				t.Fatal(err)
			}
			if c, err := chain.Parse("starter", out.Bytes()); err != nil || len(c.Functions) != 2 || string(c.Functions[1].Runtime) != runtime {
				t.Errorf("face %s, runtime %s: %v\n%s", face, runtime, err, out.String())
			}
		}
	}
	for _, argv := range [][]string{{"init", "-", "--face", "x"}, {"init", "-", "--runtime", "external"}} {
		if err := run(context.Background(), argv, io.Discard, io.Discard); exitCode(err, io.Discard) != exitUsage {
			t.Errorf("%v: %v", argv, err)
		}
	}
}

// TestInitIsPlanned plans the chain that init writes without flags.
func TestInitIsPlanned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chain.yaml")
	for _, argv := range [][]string{{"init", file}, {"plan", "--quiet", file}} {
		var out bytes.Buffer
		if err := run(context.Background(), argv, &out, io.Discard); err != nil {
			t.Errorf("%v: %v\n%s", argv, err, out.String())
		}
	}
}

func TestExplain(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), []string{"explain", "link.requires.latency"}, &out, io.Discard); err != nil ||
		!strings.HasPrefix(out.String(), "link.requires.latency\n  The largest one-way latency") {
		t.Errorf("error %v, text %s", err, out.String())
	}
	for _, field := range []string{"", "function", "port.face"} {
		argv := []string{"explain"}
		if field != "" {
			argv = append(argv, field)
		}
		fits(t, strings.Join(argv, " "), onTerminal(t, argv...))
	}
	if err := run(context.Background(), []string{"explain", "link.colour"}, io.Discard, io.Discard); exitCode(err, io.Discard) != exitUsage {
		t.Errorf("explain link.colour: %v", err)
	}
}
