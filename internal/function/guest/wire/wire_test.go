// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestFramesArriveAsSent(t *testing.T) {
	var buf []byte
	buf = Append(buf, Stdout, []byte("out"))
	buf = Append(buf, StdinEnd, nil)
	buf = Append(buf, Exit, PutUint32(137))
	r := NewReader(bytes.NewReader(buf))
	for _, want := range []struct {
		t       Type
		payload string
	}{{Stdout, "out"}, {StdinEnd, ""}, {Exit, "\x00\x00\x00\x89"}} {
		if typ, payload, err := r.Next(); err != nil || typ != want.t || string(payload) != want.payload {
			t.Errorf("type %d, %q, %v", typ, payload, err)
		}
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// TestPreambleMendsAnyCut truncates a frame at each position, as a killed client
// does: the next client's Hello arrives whole.
func TestPreambleMendsAnyCut(t *testing.T) {
	nonce := bytes.Repeat([]byte{7}, NonceSize)
	for _, frame := range [][]byte{Append(nil, Stdin, make([]byte, MaxPayload)), Append(nil, Exec, []byte(`{"argv":["x"]}`))} {
		for cut := 0; cut < len(frame); cut += 1 + cut/3 {
			stream := append(append(bytes.Clone(frame[:cut]), Preamble()...), Append(nil, Hello, nonce)...)
			r := NewReader(bytes.NewReader(stream))
			for {
				typ, payload, err := r.Next()
				if err != nil {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				if typ == Hello {
					if !bytes.Equal(payload, nonce) {
						t.Errorf("cut at %d: nonce %x", cut, payload)
					}
					break
				}
			}
		}
	}
}

func TestOversizedFrameIsRefused(t *testing.T) {
	r := NewReader(bytes.NewReader([]byte{byte(Stdout), 0xff, 0xff, 0xff, 0xff}))
	if _, _, err := r.Next(); !errors.Is(err, ErrMalformed) {
		t.Errorf("error %v", err)
	}
}

func TestAwaitSkipsWhatIsNotTheAnswer(t *testing.T) {
	nonce, other := bytes.Repeat([]byte{7}, NonceSize), bytes.Repeat([]byte{8}, NonceSize)
	stream := append(bytes.Repeat([]byte("old output"), 100), Append(nil, Welcome, other)...)
	stream = append(stream, Append(nil, Welcome, nonce)...)
	stream = append(stream, "rest"...)
	in := bufio.NewReader(bytes.NewReader(stream))
	if err := Await(in, nonce); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(in); string(rest) != "rest" {
		t.Errorf("after the answer comes %q", rest)
	}
	if err := Await(bufio.NewReader(bytes.NewReader(stream)), bytes.Repeat([]byte{9}, NonceSize)); err != io.EOF {
		t.Errorf("an unsolicited answer was accepted: %v", err)
	}
}

func TestBadRequests(t *testing.T) {
	for _, text := range []string{"", "{", `{"argv":[]}`, `{"argv":[""]}`, `{"argv":["x"],"group":"../y"}`, `{"argv":["x"],"memory":-1}`,
		`{"argv":["x"],"container":{"name":"f"}}`, `{"argv":["x"],"container":{"verb":"run"}}`} {
		if _, err := ParseRequest([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(Append(Append(nil, Exec, []byte(`{"argv":["x"]}`)), Exit, PutUint32(1)))
	f.Add([]byte{0, 0, byte(Stdout), 0, 0, 0, 9, 1})
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewReader(bytes.NewReader(stream))
		total := 0
		for {
			typ, payload, err := r.Next()
			if err != nil {
				break
			}
			if typ == 0 || len(payload) > MaxPayload {
				t.Fatalf("type %d, %d bytes", typ, len(payload))
			}
			total += header + len(payload)
			switch typ {
			case Exec:
				if req, err := ParseRequest(payload); err == nil && len(req.Argv) == 0 {
					t.Fatal("a request without a program")
				}
			case Credit, Exit:
				_, _ = Uint32(payload)
			}
		}
		if total > len(stream) {
			t.Fatalf("%d bytes of frames in %d", total, len(stream))
		}
	})
}

func FuzzAwait(f *testing.F) {
	nonce := bytes.Repeat([]byte{7}, NonceSize)
	f.Add(Append([]byte("xx"), Welcome, nonce))
	f.Fuzz(func(t *testing.T, stream []byte) {
		err := Await(bufio.NewReader(bytes.NewReader(stream)), nonce)
		if (err == nil) != bytes.Contains(stream, Append(nil, Welcome, nonce)) {
			t.Fatalf("error %v", err)
		}
	})
}
