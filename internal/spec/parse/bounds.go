// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Limits of a file. A file far below the size limit can expand to an endless document,
// because aliases repeat their targets.
const (
	MaxSize  = 1 << 20 // bytes
	maxNodes = 100_000 // values, with every alias expanded
	maxDepth = 32      // levels, with every alias expanded
)

// bounds walks a document with every alias expanded, and stops at the first excess.
type bounds struct {
	file  string
	nodes int
	depth int
	open  map[*yaml.Node]bool // anchored values that the walk is inside
	alias *yaml.Node          // the outermost alias that the walk is inside
}

// checkBounds makes every alias below root safe to follow.
func checkBounds(file string, root *yaml.Node) *Error {
	b := &bounds{file: file, open: map[*yaml.Node]bool{}}
	return b.visit(root)
}

func (b *bounds) visit(n *yaml.Node) *Error {
	if n.Kind == yaml.AliasNode {
		return b.follow(n)
	}
	b.nodes++
	if b.nodes > maxNodes {
		return b.fault(n, fmt.Sprintf("the file holds more than %d values, counting what its aliases stand for", maxNodes))
	}
	b.depth++
	defer func() { b.depth-- }()
	if b.depth > maxDepth {
		return b.fault(n, fmt.Sprintf("values are nested more than %d deep", maxDepth))
	}
	for _, child := range n.Content {
		if err := b.visit(child); err != nil {
			return err
		}
	}
	return nil
}

func (b *bounds) follow(n *yaml.Node) *Error {
	if b.alias == nil {
		b.alias = n
		defer func() { b.alias = nil }()
	}
	if b.open[n.Alias] {
		return b.fault(n, fmt.Sprintf("the alias *%s refers to a value that contains it", n.Value))
	}
	b.open[n.Alias] = true
	defer delete(b.open, n.Alias)
	return b.visit(n.Alias)
}

// fault blames the outermost alias: its target may be harmless.
func (b *bounds) fault(n *yaml.Node, text string) *Error {
	fix := "make the file smaller and flatter"
	if b.alias != nil {
		n, fix = b.alias, "write out what the alias stands for, once"
	}
	return &Error{Pos: Position{File: b.file, Line: n.Line, Column: n.Column}, Text: text, Fix: fix}
}
