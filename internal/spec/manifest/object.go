// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

// sandbox is where a chain file would name the network namespace of a function. Native
// ports are sockets, so nothing opens it.
const sandbox = "/run/netns/pod"

// Fault is one thing that is wrong with an object.
type Fault struct {
	Path string // "spec.functions[0].ports[1].mtu"
	Text string
	Fix  string // what to write instead, or ""
}

func (f Fault) String() string {
	s := f.Path + ": " + f.Text
	if f.Fix != "" {
		s += "; " + f.Fix
	}
	return s
}

// Invalid is every fault of one object, in the order of its fields by name.
type Invalid []Fault

func (i Invalid) Error() string {
	lines := make([]string, len(i))
	for n, f := range i {
		lines[n] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Parse reads the spec of the object of that name as the chain file that it stands for,
// so that both obey the same rules. What only a placement reads is checked, and left out. The
// error, if any, is an Invalid.
func Parse(name string, spec []byte) (*chain.Chain, error) {
	text, err := document(name, spec)
	if err != nil {
		return nil, Invalid{{Path: "spec", Text: err.Error()}}
	}
	c, err := chain.Parse("", text)
	if err == nil {
		r := refusals{}
		if r.counts(c); r.faults != nil {
			err = r.faults
		}
	}
	if err != nil {
		err = translated(text, err)
	}
	if _, unplaced := ParsePlacement(spec); unplaced != nil {
		err = joined(err, unplaced)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// translated is an error of generated text as one of the object.
func translated(text []byte, err error) error {
	var faults parse.Errors
	if errors.As(err, &faults) {
		return placesOf(text).translate(faults)
	}
	return err
}

// joined are all faults of two errors.
func joined(a, b error) error {
	var first, second Invalid
	if errors.As(a, &first) && errors.As(b, &second) {
		return append(first, second...)
	}
	if a == nil {
		return b
	}
	return a
}

// document is the chain file, with each value on a line of its own.
func document(name string, spec []byte) ([]byte, error) {
	fields, err := fieldsOf(spec)
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"], fields["name"] = chain.APIVersion, chain.Kind, name
	Unplace(fields)
	for _, f := range objectsIn(fields["functions"]) {
		f["runtime"] = string(chain.RuntimeExternal)
		f["external"] = map[string]any{"netns": sandbox}
	}
	return json.MarshalIndent(fields, "", " ")
}

// fieldsOf are the fields of a spec, with its numbers as written.
func fieldsOf(spec []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(spec))
	d.UseNumber()
	fields := map[string]any{}
	if err := d.Decode(&fields); err != nil {
		return nil, fmt.Errorf("it is not an object: %w", err)
	}
	if fields == nil {
		return nil, errors.New("it is null, not an object")
	}
	return fields, nil
}

// objectsIn are the objects of a JSON array.
func objectsIn(v any) (all []map[string]any) {
	items, _ := v.([]any)
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			all = append(all, o)
		}
	}
	return all
}
