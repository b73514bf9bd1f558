// SPDX-License-Identifier: Apache-2.0

// Package docs reads the commands in the documentation, so that a test can run
// them.
package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is one fenced block of shell commands.
type Block struct {
	Line   int    // of its first command
	Script string // its commands, one per line
	NotRun string // why no test runs it; empty: one does
}

var (
	notRun = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	judges = regexp.MustCompile(`^(dray (?:run|verify) [^|#]*[^|# ])( +#.*)?$`)
	exits  = regexp.MustCompile(`^(.*\S)\s+# exits ([1-9][0-9]*)$`)
	fence  = "```"
)

// Blocks returns the blocks marked sh of a Markdown file. The line above a
// block's fence may say `<!-- not run: WHY -->`.
func Blocks(markdown string) ([]Block, error) {
	var (
		blocks []Block
		inside bool // in a block of any language
		shell  bool // in one marked sh
		reason string
	)
	for i, line := range strings.Split(markdown, "\n") {
		switch {
		case strings.HasPrefix(line, fence) && inside:
			inside, shell = false, false
		case strings.HasPrefix(line, fence):
			inside, shell = true, line == fence+"sh"
			if shell {
				blocks = append(blocks, Block{Line: i + 2, NotRun: reason})
			}
			reason = ""
		case shell:
			blocks[len(blocks)-1].Script += line + "\n"
		case inside || line == "":
		default:
			reason = ""
			if m := notRun.FindStringSubmatch(line); m != nil {
				reason = m[1]
			} else if strings.HasPrefix(line, "<!-- not run") {
				return nil, fmt.Errorf("line %d: write <!-- not run: WHY -->", i+1)
			}
		}
	}
	if inside {
		return nil, fmt.Errorf("a block is never closed")
	}
	return blocks, nil
}

// Executable is the block as a script that fails if a command does. A command
// with the comment `# exits N` must exit with N. Commands that measure may end
// with any verdict, even exit status 4 or 5: that depends on the machine at that
// time.
func (b Block) Executable() string {
	var out strings.Builder
	out.WriteString("set -euo pipefail\n")
	for _, line := range strings.Split(b.Script, "\n") {
		if m := exits.FindStringSubmatch(line); m != nil {
			line = fmt.Sprintf("status=0; %s || status=$?; [ $status -eq %s ] || { echo \"exit status $status, not %s\"; exit 1; }",
				m[1], m[2], m[2])
		} else if m := judges.FindStringSubmatch(line); m != nil {
			line = m[1] + " || [ $? -ge 4 ]"
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}
