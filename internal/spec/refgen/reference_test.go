// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

const docs = "../../../docs"

func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s is stale: run `go generate ./internal/spec/...`", name)
		}
	}
}

func TestReferenceExampleParses(t *testing.T) {
	text, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatal("the reference has no example")
	}
	if _, err := chain.Parse("example", example[1]); err != nil {
		t.Error(err)
	}
}

func TestReferenceLinksLeadToHeadings(t *testing.T) {
	text, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			headings[anchor(strings.ToLower(title))] = true
		}
	}
	links := regexp.MustCompile(`\]\((#[^)]*)\)`).FindAllSubmatch(text, -1)
	if len(links) < 10 {
		t.Fatalf("only %d links were found", len(links))
	}
	for _, link := range links {
		if !headings[string(link[1])] {
			t.Errorf("no heading for the link %s", link[1])
		}
	}
}

func TestRunWritesEveryFile(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{dir}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dir + "/chain-reference.md")
	if err != nil || !bytes.Contains(text, []byte("| `min_bitrate` |")) {
		t.Errorf("got %d bytes, error %v", len(text), err)
	}
	for _, name := range []string{"chain", "bench", "experiment"} {
		if _, err := os.Stat(dir + "/schema/" + name + ".schema.json"); err != nil {
			t.Error(err)
		}
	}
}

func TestRunWithoutFileIsAnError(t *testing.T) {
	if err := run(nil); err == nil {
		t.Error("no error")
	}
}
