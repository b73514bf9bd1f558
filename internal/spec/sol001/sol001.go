// SPDX-License-Identifier: Apache-2.0

// Package sol001 converts between chain files and the descriptors of ETSI GS NFV-SOL 001,
// which are service templates in TOSCA Simple Profile in YAML. It reads network service
// descriptors (NSD) and VNF descriptors (VNFD), and writes VNFDs. What one format cannot
// say of the other becomes a Note.
package sol001

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/parse"
)

// Version is the version of SOL001 that Export writes.
const Version = "4.4.1"

// typesFile is the file of ETSI with the types of VNFDs.
const typesFile = "etsi_nfv_sol001_vnfd_types.yaml"

// The kinds of descriptors.
const (
	kindNSD  = "NSD"
	kindVNFD = "VNFD"
)

// maxNotes limits the notes of one conversion.
const maxNotes = 2000

// Note is one thing that a conversion left out or had to change.
type Note struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	In     string `json:"in,omitempty"` // the part of the file, such as "VDU du"
	Text   string `json:"text"`
	Fix    string `json:"fix,omitempty"`
}

// String is "file:line:column: part: text; fix".
func (n Note) String() string {
	s := parse.Position{File: n.File, Line: n.Line, Column: n.Column}.String() + ": "
	if n.In != "" {
		s += n.In + ": "
	}
	s += n.Text
	if n.Fix != "" {
		s += "; " + n.Fix
	}
	return s
}

// notes collects what a conversion leaves out.
type notes struct {
	list   []Note
	unseen int // beyond maxNotes
	files  []string
}

// file gives the notes of a file their place in the order: that of the first calls.
func (n *notes) file(name string) {
	if !slices.Contains(n.files, name) {
		n.files = append(n.files, name)
	}
}

func (n *notes) add(at parse.Position, in, fix, format string, args ...any) {
	if len(n.list) == maxNotes {
		n.unseen++
		return
	}
	n.list = append(n.list, Note{File: at.File, Line: at.Line, Column: at.Column, In: in, Text: fmt.Sprintf(format, args...), Fix: fix})
}

// sorted are the notes by position, without duplicates.
func (n *notes) sorted() []Note {
	slices.SortStableFunc(n.list, func(a, b Note) int {
		return cmp.Or(cmp.Compare(slices.Index(n.files, a.File), slices.Index(n.files, b.File)),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	list := append([]Note{}, slices.Compact(n.list)...) // not nil, which JSON would print as null
	if n.unseen > 0 {
		last := list[len(list)-1]
		list = append(list, Note{File: last.File, Line: last.Line, Column: last.Column, Text: fmt.Sprintf("%d more are not listed", n.unseen)})
	}
	return list
}
