// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/test/testenv"
)

// hostile makes files that cost time or memory, up to a given size.
var hostile = map[string]func(size int) string{
	"flow lists":        repeat("[", ""),
	"flow mappings":     repeat("{a: ", ""),
	"nested lists":      repeat("- ", ""),
	"nested keys":       repeat("? ", ""),
	"keys":              func(size int) string { return numbered("k%d: v\n", size/2) },
	"flow keys":         func(size int) string { return "{" + numbered("k%d: v, ", size) + "}" },
	"comments":          repeat("# comment\n", ""),
	"indented comments": repeat("a:\n  # c\n", ""),
	"anchors":           func(size int) string { return numbered("- &a%d x\n", size) },
	"aliases":           repeat("- *a\n", "- &a x\n"),
	"documents":         repeat("---\n", ""),
	"ports of one": func(size int) string {
		return chainHead + "  - name: a\n    ports:\n" + numbered("    - {name: p%d, ip: 10.0.0.1/8}\n", size/2)
	},
	"dangling ends":      danglingEnds,
	"unknown fields":     func(size int) string { return chainHead + "  - name: a\n" + numbered("    nmae%d: x\n", size/2) },
	"long text":          func(size int) string { return "name: " + strings.Repeat("x", size-6) },
	"long quoted text":   func(size int) string { return `name: "` + strings.Repeat(`\n`, size/2-4) + `"` },
	"unterminated quote": func(size int) string { return `name: "` + strings.Repeat("x\n", size/2-4) },
	"late syntax error":  func(size int) string { return numbered("k%d: v\n", size) + "a: b: c" },
	"block text":         repeat(" x\n", "a: |\n"),
	"blank lines":        repeat("\n", "a: 'b"),
	"tabs":               repeat("\t", "a:"),
	"colons":             repeat(":", ""),
	"percent":            repeat("%YAML 1.1\n", ""),
}

const chainHead = "apiVersion: drayage/v1\nkind: Chain\nname: c\nfunctions:\n"

func repeat(unit, head string) func(int) string {
	return func(size int) string { return head + strings.Repeat(unit, (size-len(head))/len(unit)) }
}

func numbered(format string, size int) string {
	var b strings.Builder
	for i := 0; ; i++ {
		next := fmt.Sprintf(format, i)
		if b.Len()+len(next) > size-len(chainHead)-40 {
			return b.String()
		}
		b.WriteString(next)
	}
}

// danglingEnds has as many ports as ends, and no end matches a port. Like other files
// meant to reach the last checks, it stays below the limit of values.
func danglingEnds(size int) string {
	return chainHead + numbered("  - {name: a%d, ports: [{name: pppppppppppppp0}]}\n", size/5) +
		"links:\n" + numbered("  - {name: l%[1]d, ends: [b%[1]d.qqqqqqqqqqqqqqq, b%[1]d.rrrrrrrrrrrrrrr]}\n", size/5)
}

// bound is for processor time. It is far above the time of any file so far (under 0.3
// s), to allow for slow machines and the race detector.
const bound = 20 * time.Second

func TestHostileFilesAreRefusedInTime(t *testing.T) {
	for name, grow := range hostile {
		t.Run(name, func(t *testing.T) {
			text := grow(parse.MaxSize)
			if len(text) > parse.MaxSize {
				t.Fatalf("the file has %d bytes", len(text))
			}
			start := testenv.ProcessorTime(t)
			_, err := Parse("hostile.yaml", []byte(text))
			if took := testenv.ProcessorTime(t) - start; took > bound {
				t.Errorf("took %v", took)
			}
			if err == nil {
				t.Error("no error")
			}
		})
	}
}
