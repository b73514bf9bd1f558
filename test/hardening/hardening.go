// SPDX-License-Identifier: Apache-2.0

// Package hardening checks that programs, libraries and the objects that they were
// linked from have the protections that compilers and linkers offer.
package hardening

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Kind is what a file is. It decides which checks apply.
type Kind int

const (
	// GoProgram is static and not position-independent: without cgo, Go makes
	// position-independent programs only with an interpreter, and these must run in
	// containers that have none. It is linked without relocations to protect.
	GoProgram Kind = 1 << iota
	// StaticProgram is in C, and runs in any container.
	StaticProgram
	// Program is in C, with shared libraries.
	Program
	// Library is shared, in C.
	Library

	inC      = StaticProgram | Program | Library
	programs = StaticProgram | Program
	anyKind  = GoProgram | inC
)

// fileChecks look at a program or library as it is installed.
var fileChecks = []struct {
	name    string
	applies Kind
	holds   func(*elf.File) bool
}{
	{"position-independent", inC, func(f *elf.File) bool { return f.Type == elf.ET_DYN }},
	{"marked as a position-independent program", programs, func(f *elf.File) bool { return flag(f, elf.DT_FLAGS_1, uint64(elf.DF_1_PIE)) }},
	{"relocations become read-only", inC, func(f *elf.File) bool { return segment(f, elf.PT_GNU_RELRO) != nil }},
	{"all symbols bound at the start", inC, func(f *elf.File) bool { return flag(f, elf.DT_FLAGS, uint64(elf.DF_BIND_NOW)) }},
	{"stack not executable", anyKind, func(f *elf.File) bool {
		stack := segment(f, elf.PT_GNU_STACK)
		return stack != nil && stack.Flags&elf.PF_X == 0
	}},
	{"no memory both writable and executable", anyKind, func(f *elf.File) bool {
		const both = elf.PF_W | elf.PF_X
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && p.Flags&both == both {
				return false
			}
		}
		return true
	}},
	{"no relocations in code", anyKind, func(f *elf.File) bool {
		return !present(f, elf.DT_TEXTREL) && !flag(f, elf.DT_FLAGS, uint64(elf.DF_TEXTREL))
	}},
	{"no library path of its own", anyKind, func(f *elf.File) bool { return !present(f, elf.DT_RPATH) && !present(f, elf.DT_RUNPATH) }},
	{"needs no interpreter", GoProgram | StaticProgram, func(f *elf.File) bool {
		return segment(f, elf.PT_INTERP) == nil && !present(f, elf.DT_NEEDED)
	}},
}

// File returns the checks that a file of a kind fails.
func File(path string, kind Kind) (failed []string, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for _, c := range fileChecks {
		if c.applies&kind != 0 && !c.holds(f) {
			failed = append(failed, c.name)
		}
	}
	return failed, nil
}

// Objects returns the checks that the objects of one program or library fail. A
// linked file cannot tell: the static ones also hold the C library, and the start-up
// code of Debian has no mark for control-flow enforcement.
func Objects(paths []string) (failed []string, err error) {
	if len(paths) == 0 {
		return nil, errors.New("there are no objects to check")
	}
	guarded, fortified := false, false
	for _, path := range paths {
		f, err := elf.Open(path)
		if err != nil {
			return nil, err
		}
		symbols, err := f.Symbols()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, s := range symbols {
			if s.Section == elf.SHN_UNDEF {
				guarded = guarded || s.Name == "__stack_chk_fail"
				fortified = fortified || s.Name != "__stack_chk_fail" && strings.HasPrefix(s.Name, "__") && strings.HasSuffix(s.Name, "_chk")
			}
		}
		if !controlFlow(f) {
			failed = append(failed, path+": control-flow enforcement")
		}
		f.Close()
	}
	if !guarded {
		failed = append(failed, "stack protector")
	}
	if !fortified {
		failed = append(failed, "fortified functions")
	}
	return failed, nil
}

// controlFlow says whether an object is marked with all that its architecture offers:
// on x86 indirect branch tracking and shadow stacks, on ARM branch targets and signed
// return addresses. Both are two bits of a property of the architecture.
func controlFlow(f *elf.File) bool {
	const (
		header = 16 // sizes, type and name of the note
		both   = 3
	)
	property, checked := map[elf.Machine]uint32{elf.EM_X86_64: 0xc0000002, elf.EM_AARCH64: 0xc0000000}[f.Machine]
	if !checked {
		return true
	}
	section := f.Section(".note.gnu.property")
	if section == nil {
		return false
	}
	note, err := section.Data()
	if err != nil || len(note) < header {
		return false
	}
	for rest := note[header:]; len(rest) >= 12; {
		kind, size := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint32(rest[4:])
		if kind == property && size == 4 {
			return binary.LittleEndian.Uint32(rest[8:])&both == both
		}
		next := 8 + (uint64(size)+7)&^7
		rest = rest[min(next, uint64(len(rest))):]
	}
	return false
}

func segment(f *elf.File, kind elf.ProgType) *elf.Prog {
	for _, p := range f.Progs {
		if p.Type == kind {
			return p
		}
	}
	return nil
}

// present says whether the dynamic section has an entry.
func present(f *elf.File, tag elf.DynTag) bool {
	values, err := f.DynValue(tag)
	return err == nil && len(values) > 0
}

// flag says whether a bit is set in an entry of the dynamic section.
func flag(f *elf.File, tag elf.DynTag, bit uint64) bool {
	values, err := f.DynValue(tag)
	if err != nil {
		return false
	}
	for _, v := range values {
		if v&bit != 0 {
			return true
		}
	}
	return false
}
