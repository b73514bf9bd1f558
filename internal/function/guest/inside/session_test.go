// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/drayage/dray/internal/function/guest/wire"
)

var errNone = errors.New("no such program")

// refusing is a session that cannot start programs.
func refusing(port io.Writer) *session {
	return &session{port: port, start: func(wire.Request, func(wire.Type, []byte) error) (*running, error) { return nil, errNone }}
}

func hello() []byte { return wire.Append(nil, wire.Hello, make([]byte, wire.NonceSize)) }

// talk sends a client's frames to a session and returns its answers.
func talk(t *testing.T, says []byte) ([]wire.Type, error) {
	t.Helper()
	var port bytes.Buffer
	s := refusing(&port)
	in := wire.NewReader(bytes.NewReader(says))
	var failed error
	for failed == nil {
		kind, payload, err := in.Next()
		if err != nil {
			break
		}
		failed = s.frame(kind, payload)
	}
	var kinds []wire.Type
	for answers := wire.NewReader(&port); ; {
		kind, _, err := answers.Next()
		if err != nil {
			return kinds, failed
		}
		kinds = append(kinds, kind)
	}
}

func TestSession(t *testing.T) {
	exec := wire.Append(nil, wire.Exec, []byte(`{"argv":["x"]}`))
	for name, test := range map[string]struct {
		says      []byte
		want      []wire.Type
		malformed bool
	}{
		"a client":                   {slices.Concat(hello(), exec), []wire.Type{wire.Welcome, wire.Failed}, false},
		"what an earlier one left":   {slices.Concat(exec, hello()), []wire.Type{wire.Welcome}, false},
		"two clients":                {slices.Concat(hello(), hello(), exec), []wire.Type{wire.Welcome, wire.Welcome, wire.Failed}, false},
		"a short nonce":              {wire.Append(nil, wire.Hello, []byte("x")), nil, true},
		"a request that is none":     {wire.Append(hello(), wire.Exec, []byte("{")), []wire.Type{wire.Welcome}, true},
		"input without a program":    {wire.Append(hello(), wire.Stdin, []byte("x")), []wire.Type{wire.Welcome}, false},
		"a frame of the guest's own": {wire.Append(hello(), wire.Stdout, nil), []wire.Type{wire.Welcome}, true},
		"a signal without a number":  {wire.Append(hello(), wire.Signal, nil), []wire.Type{wire.Welcome}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := talk(t, test.says)
			if !slices.Equal(got, test.want) || errors.Is(err, wire.ErrMalformed) != test.malformed {
				t.Errorf("answers %v, error %v", got, err)
			}
		})
	}
}

func TestInputBeyondItsCreditIsRefused(t *testing.T) {
	r := &running{}
	r.wakeup = sync.NewCond(&r.mu)
	if !r.feed(make([]byte, wire.Window)) {
		t.Error("a window's worth was refused")
	}
	if r.feed([]byte("x")) {
		t.Error("more than a window was accepted")
	}
}

func TestFindPorts(t *testing.T) {
	class := t.TempDir()
	for dir, name := range map[string]string{"vport1p1": "dray.0\n", "vport1p2": "org.qemu\n", "vport1p3": "dray.1\n"} {
		if err := os.Mkdir(filepath.Join(class, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(class, dir, "name"), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	list, err := findPorts(class, "/dev")
	if err != nil || !slices.Equal(list, []string{"/dev/vport1p1", "/dev/vport1p3"}) {
		t.Errorf("%v, %v", list, err)
	}
}

func FuzzSession(f *testing.F) {
	f.Add(slices.Concat(hello(), wire.Append(nil, wire.Exec, []byte(`{"argv":["x"],"group":"g"}`)), wire.Append(nil, wire.Stdin, []byte("in"))))
	f.Fuzz(func(t *testing.T, says []byte) {
		s := refusing(io.Discard)
		in := wire.NewReader(bytes.NewReader(says))
		for {
			kind, payload, err := in.Next()
			if err != nil {
				return
			}
			if err := s.frame(kind, payload); err != nil {
				if !errors.Is(err, wire.ErrMalformed) {
					t.Fatalf("type %d: %v", kind, err)
				}
				return
			}
		}
	})
}
