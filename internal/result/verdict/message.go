// SPDX-License-Identifier: Apache-2.0

package verdict

import "strings"

// Message is a verdict as the text of a condition, for which Kubernetes has one field.
type Message struct {
	At       string `json:"at,omitempty"` // the port that reports it
	Required string `json:"required,omitempty"`
	Measured string `json:"measured,omitempty"`
	Bound    string `json:"bound,omitempty"`
	Basis    string `json:"basis,omitempty"`
	Because  string `json:"because,omitempty"`
	Needs    string `json:"needs,omitempty"` // what a decision takes
}

// fields are the labels of a message's parts, in their order.
func (m *Message) fields() []struct {
	label string
	value *string
} {
	return []struct {
		label string
		value *string
	}{
		{"required: ", &m.Required}, {"measured: ", &m.Measured}, {"bound: ", &m.Bound}, {"basis: ", &m.Basis},
		{"because: ", &m.Because}, {"needs: ", &m.Needs},
	}
}

// MessageOf is what to say of a verdict. Why a requirement is met needs no words.
func MessageOf(v Verdict) Message {
	m := Message{Required: v.Required.Text, Needs: v.Needs}
	if v.Measured.Value != nil {
		m.Measured, m.Bound, m.Basis = v.Measured.Text, v.Bound.Text, v.Basis
	}
	if v.Verdict != Met {
		m.Because = v.Reason
	}
	return m
}

const (
	partEnd = "; "
	atEnd   = ": "
)

// String is the text that ReadMessage reads.
func (m Message) String() string {
	var parts []string
	for _, f := range m.fields() {
		if *f.value != "" {
			parts = append(parts, f.label+*f.value)
		}
	}
	text := strings.Join(parts, partEnd)
	if m.At != "" {
		text = m.At + atEnd + text
	}
	return text
}

// ReadMessage reads the text of a condition. A text of another form is the reason.
func ReadMessage(text string) Message {
	var m Message
	var last *string
	for _, f := range m.fields() {
		before, after, found := cutLabel(text, f.label, last != nil)
		switch {
		case !found:
			continue
		case last != nil:
			*last = before
		default:
			m.At = strings.TrimSuffix(before, atEnd)
		}
		last, text = f.value, after
	}
	if last == nil {
		return Message{Because: text}
	}
	*last = text
	return m
}

// cutLabel cuts a text at a label, which ends the part before it if there is one.
func cutLabel(text, label string, part bool) (before, after string, found bool) {
	if part {
		return strings.Cut(text, partEnd+label)
	}
	if rest, first := strings.CutPrefix(text, label); first {
		return "", rest, true
	}
	before, after, found = strings.Cut(text, atEnd+label)
	return before, after, found
}
