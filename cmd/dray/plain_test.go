// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	pty.Slave.Close()
	text := <-shown
	harmlessOn(t, "the terminal", text)
	if n := strings.Count(text, "before?[2J"); n != 5 {
		t.Errorf("%d of 5 texts are shown: %q", n, text)
	}
	var piped bytes.Buffer
	if err := (&app{out: &piped}).printLog(context.Background(), file, false); err != nil || piped.String() != hostile {
		t.Errorf("a pipe got %q, %v", piped.String(), err)
	}
}
