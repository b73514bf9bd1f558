// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/drayage/dray/internal/host"
)

// hostile is output that clears the screen, sets the title, asks the terminal to
// type, and hides text; in 7 and in 8 bits.
const hostile = "before\x1b[2J\x1b]0;title\a\u009b6n\x9b6n\u202egnp.exe\x7f\r\nnext\tcolumn é\n"

const harmless = "before?[2J?]0;title??6n\ufffd6n?gnp.exe?\nnext\tcolumn é\n"

func TestPlainWriter(t *testing.T) {
	for size := 1; size <= len(hostile); size++ {
		var b bytes.Buffer
		w := &plainWriter{to: &b}
		for i := 0; i < len(hostile); i += size {
			if n, err := w.Write([]byte(hostile[i:min(i+size, len(hostile))])); err != nil || n > size {
				t.Fatal(n, err)
			}
		}
		if b.String() != harmless {
			t.Fatalf("in pieces of %d bytes: %q", size, b.String())
		}
	}
}

// harmlessOn fails the test if text reached the terminal as it was written.
func harmlessOn(t *testing.T, what, text string) {
	t.Helper()
	text = strings.ReplaceAll(text, "\r\x1b[K", "") // progress
	if !strings.Contains(text, "before?[2J") || strings.ContainsAny(text, "\x1b\a\u009b\u202e\x7f") {
		t.Errorf("%s: %q", what, text)
	}
}

// TestFunctionsCannotControlTheTerminal: what a function wrote is shown as text. In
// a pipe its log is unchanged.
func TestFunctionsCannotControlTheTerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "du.log")
	if err := os.WriteFile(file, []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	pty, err := host.OpenPty(columns, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer pty.Master.Close()
	shown := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(pty.Master) // it returns an error after the other end closes
		shown <- string(b)
	}()
	a := &app{out: pty.Slave, err: pty.Slave, color: colorNever}
	if err := a.printLog(context.Background(), file, false); err != nil {
		t.Error(err)
	}
	exitCode(errors.New("its last output:\n"+hostile), pty.Slave)
	a.progress("%s", "Starting "+hostile)
	a.warn(errors.New(hostile))
	if err := a.printText(func(w io.Writer, _ int) error { _, err := io.WriteString(w, hostile); return err }); err != nil {
		t.Error(err)
	}
	if err := a.drawPage([]byte(hostile)); err != nil {
		t.Error(err)
	}
	pty.Slave.Close()
	text := strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[J", "").Replace(<-shown) // of a page that replaces the last
	harmlessOn(t, "the terminal", text)
	if n := strings.Count(text, "before?[2J"); n != 6 {
		t.Errorf("%d of 6 texts are shown: %q", n, text)
	}
	var piped bytes.Buffer
	if err := (&app{out: &piped}).printLog(context.Background(), file, false); err != nil || piped.String() != hostile {
		t.Errorf("a pipe got %q, %v", piped.String(), err)
	}
}

// TestDocumentsCannotControlTheTerminal: a document is the same for programs.
func TestDocumentsCannotControlTheTerminal(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out}
	want := strings.ToValidUTF8(hostile, "\ufffd") + "\U000e0041"
	for name, print := range map[string]func(string, any) error{"document": a.printJSON, "line": a.printLine} {
		out.Reset()
		if err := print("test/1", map[string]string{"text": hostile + "\U000e0041"}); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%s: %U in %q", name, r, out.String())
			}
		}
		var read struct{ Text string }
		if err := json.Unmarshal(out.Bytes(), &read); err != nil || read.Text != want {
			t.Errorf("%s: read as %q, %v", name, read.Text, err)
		}
	}
}
