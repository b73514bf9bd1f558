// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// The longest names of a chain file: of functions and links, and of ports.
const (
	longName = 32
	longPort = 15
)

// plainName is the nearest name that a chain file can have: a-z, 0-9 and -, with none at
// either end. It can be empty.
func plainName(text string, long int) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == long {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

// names gives each thing of a kind a name of its own.
type names struct {
	long  int
	taken map[string]bool
	next  map[string]int // by a name that is taken: the number to try for the next of it
}

func newNames(long int, reserved ...string) *names {
	n := &names{long: long, taken: map[string]bool{}, next: map[string]int{}}
	for _, name := range reserved {
		n.taken[name] = true
	}
	return n
}

// take is the name for a text, or for another one if it has no letters.
func (n *names) take(text, other string) string {
	base := plainName(text, n.long)
	if base == "" {
		base = other
	}
	name := base
	for i := max(2, n.next[base]); n.taken[name]; i++ {
		end := fmt.Sprintf("-%d", i)
		name = strings.TrimRight(base[:min(len(base), n.long-len(end))], "-") + end
		n.next[base] = i + 1
	}
	n.taken[name] = true
	return name
}

// numbered are names for the instances of a function.
func (n *names) numbered(text string, count int) []string {
	all := make([]string, count)
	base := plainName(text, n.long-3)
	for i := range all {
		all[i] = n.take(fmt.Sprintf("%s-%d", base, i), "vdu")
	}
	return all
}

// renamed notes that a part of the descriptor has another name in the chain.
func (s *scope) renamed(key *yaml.Node, in, was, is string) {
	if was != is {
		s.note(key, in, "", "%s is called %s in the chain", parse.Quote(was), is)
	}
}
