// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/runtime"
)

// inTerminal prints its terminal, and each new size of it (TIOCGWINSZ), until it
// reads a line.
const inTerminal = `$| = 1;
sub size { my $b = "\0" x 8; ioctl(STDIN, 0x5413, $b) or die "no size: $!"; join "x", (unpack "S4", $b)[1, 0] }
print "terminals ", (-t STDIN) + (-t STDOUT) + (-t STDERR), " $ENV{TERM}\n";
for (my $last = "";;) {
	my $size = size();
	if ($size ne $last) { print "size $size\n"; $last = $size }
	my $ready = ""; vec($ready, 0, 1) = 1;
	if (select($ready, undef, undef, 0.02) > 0) { my $line = <STDIN>; print "read $line"; exit 3 }
}`

// testTerminal runs programs in a terminal, with and without the function's
// command.
func testTerminal(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	if _, gives := c.Runtime.(runtime.TerminalGiver); !gives {
		t.Skip("this runtime gives no terminals")
	}
	f.resizedTerminal(c.LateSize)
	f.Start("sleep", "1000")
	f.resizedTerminal(c.LateSize)

	in, keys := io.Pipe()
	defer keys.Close()
	out, ended := f.execIn(&runtime.Terminal{Name: "vt100"}, in, "sh", "-c", "echo up; exec sleep 1000")
	Eventually(t, "the program", func() bool { return strings.Contains(out.String(), "up") })
	if _, err := keys.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if code := ended(); code != 128+2 {
		t.Errorf("interrupted in its terminal: status %d, %q", code, out)
	}
}

// resizedTerminal runs a program in a terminal that is resized.
func (f *Function) resizedTerminal(lateSize bool) {
	t := f.T
	t.Helper()
	sizes := make(chan runtime.Size)
	in, keys := io.Pipe()
	defer keys.Close()
	out, ended := f.execIn(&runtime.Terminal{Name: "vt100", Size: runtime.Size{Columns: 120, Rows: 40}, Resized: sizes}, in, "perl", "-e", inTerminal)
	Eventually(t, "its first size", func() bool { return strings.Contains(out.String(), "size 120x40\r\n") })
	if _, first, _ := strings.Cut(out.String(), "size "); !lateSize && !strings.HasPrefix(first, "120x40\r") {
		t.Errorf("the program started without its size: %q", out)
	}
	// runc shows the first lines before it makes its own terminal raw: they end in "\r\r\n".
	if !strings.Contains(out.String(), "terminals 3 vt100\r") {
		t.Errorf("the program has no terminal: %q", out)
	}
	// Docker's client looks for changes only after the first size is set, so one may be missed.
	next := runtime.Size{Columns: 100, Rows: 51}
	Eventually(t, "its next size", func() bool {
		next.Columns++
		select {
		case sizes <- next:
		default: // not yet, or the program has ended
		}
		return strings.Contains(out.String(), "x51\r\n")
	})
	if _, err := keys.Write([]byte("hello\r")); err != nil { // as a keyboard does
		t.Fatal(err)
	}
	if code := ended(); code != 3 || !strings.Contains(out.String(), "read hello") {
		t.Errorf("status %d, %q", code, out)
	}
}

// execIn starts a program in a terminal; ended returns its exit status.
func (f *Function) execIn(terminal *runtime.Terminal, in io.Reader, argv ...string) (out *Buffer, ended func() int) {
	out = &Buffer{}
	type result struct {
		code int
		err  error
	}
	done := make(chan result, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		var r result
		r.code, r.err = f.Runtime.Exec(ctx, f.Spec, argv, runtime.Stdio{Stdin: in, Stdout: out, Stderr: out, Terminal: terminal})
		done <- r
	}()
	return out, func() int {
		f.T.Helper()
		r := <-done
		if r.err != nil {
			f.T.Fatalf("exec %q: %v; it printed %q", argv, r.err, out)
		}
		return r.code
	}
}
