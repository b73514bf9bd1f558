// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxListed is how many items a list without repetition may hold.
const maxListed = 64

// Words is a list of words, without duplicates.
func Words[T ~string](d *Decoder, n *yaml.Node, what string, known []T) []T {
	return distinct(d, n, what, func(item *yaml.Node) (T, bool) { return Choice(d, item, what, known) })
}

// Parsed is a list of values from plain text, without duplicates.
func Parsed[T comparable](d *Decoder, n *yaml.Node, what string, parse func(string) (T, error)) []T {
	return distinct(d, n, what, func(item *yaml.Node) (T, bool) { return Quantity(d, item, what, parse) })
}

func distinct[T comparable](d *Decoder, n *yaml.Node, what string, decode func(*yaml.Node) (T, bool)) []T {
	var out []T
	d.List(n, what+"s", func(item *yaml.Node) {
		v, ok := decode(item)
		switch {
		case !ok:
		case slices.Contains(out, v):
			d.Fail(item, "remove one of the two", "the %s %s appears twice", what, Quote(Deref(item).Value))
		case len(out) == maxListed:
			d.Fail(item, "split the matrix into several", "a matrix lists more than "+strconv.Itoa(maxListed)+" %ss", what)
		default:
			out = append(out, v)
		}
	})
	if m := Deref(n); m.Kind == yaml.SequenceNode && len(m.Content) == 0 {
		d.Fail(n, "list at least one, or leave the field out", "the matrix has no %ss", what)
	}
	return out
}
