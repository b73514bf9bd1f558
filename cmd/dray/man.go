// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/layout"
	"github.com/drayage/dray/internal/spec/release"
)

// manWidth is 80 columns minus the margin of a page.
const manWidth = 72

// purposes are the first lines of the manual pages of the other programs.
var purposes = map[string]string{
	"draygen":      "traffic generator, sink and reflector",
	"draygen-dpdk": "traffic generator, sink and reflector on DPDK devices",
	"dray-vnf":     "network functions on DPDK ports",
	"dray-limit":   "the best that two cores of this machine can do",
	"dray-guest":   "first process of Drayage's virtual machines",
}

// manCommand writes the manual pages of all commands; `make man` calls it.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR [PROGRAM...]",
		Short:  "Write the manual pages of every command, and of other programs",
		Hidden: true,
		Args:   args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			root := cmd.Root()
			root.InitDefaultCompletionCmd()
			for _, tree := range []*cobra.Command{root, newKubectlRoot(a)} {
				if err := commandPages(argv[0], tree); err != nil {
					return err
				}
			}
			for _, program := range argv[1:] {
				// An internal program prints its help as an error.
				answer, _ := host.Helper{Program: program, Args: []string{"--help"}}.Run(cmd.Context())
				help, name := answer.Text(), filepath.Base(program)
				if help == "" || purposes[name] == "" {
					return fmt.Errorf("%s prints no help, or has no entry in the list of programs", program)
				}
				if err := writePage(argv[0], name, func(w io.Writer) { programPage(w, name, help) }); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// commandPages writes the pages of a command and its sub-commands.
func commandPages(dir string, cmd *cobra.Command) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if err := writePage(dir, name, func(w io.Writer) { commandPage(w, name, cmd) }); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			if err := commandPages(dir, sub); err != nil {
				return err
			}
		}
	}
	return nil
}

func writePage(dir, name string, write func(io.Writer)) error {
	return printTo(filepath.Join(dir, name+".1"), func(w io.Writer) error {
		var b bytes.Buffer
		write(&b)
		_, err := w.Write(b.Bytes())
		return err
	})
}

func commandPage(w io.Writer, name string, cmd *cobra.Command) {
	manHead(w, name, cmd.Short)
	fmt.Fprintf(w, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprint(w, ".SH DESCRIPTION\n"+manProse(text))
	manFlags(w, "OPTIONS", cmd.NonInheritedFlags().FlagUsagesWrapped(manWidth))
	manFlags(w, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags().FlagUsagesWrapped(manWidth))
	if cmd.Example != "" {
		fmt.Fprintf(w, ".SH EXAMPLES\n%s", verbatim(cmd.Example))
	}
	var related []string
	if cmd.HasParent() {
		related = append(related, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			related = append(related, name+"-"+sub.Name())
		}
	}
	if len(related) > 0 {
		fmt.Fprintf(w, ".SH SEE ALSO\n%s(1)\n", roff(strings.Join(related, "(1), ")))
	}
}

// programPage shows a program's help unchanged.
func programPage(w io.Writer, name, help string) {
	manHead(w, name, purposes[name])
	fmt.Fprintf(w, ".SH DESCRIPTION\n%s.SH SEE ALSO\ndray(1)\n", verbatim(layout.Prose(indented(help), manWidth)))
}

// indented keeps each line of a help text on its own line.
func indented(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = " " + line
		}
	}
	return strings.Join(lines, "\n")
}

func manHead(w io.Writer, name, purpose string) {
	fmt.Fprintf(w, ".TH %s 1 %q %q %q\n.SH NAME\n%s \\- %s\n",
		roff(strings.ToUpper(name)), release.Date(), "Drayage "+release.Version(), "User Commands", roff(name), roff(purpose))
}

// manProse fills paragraphs, and keeps indented lines unchanged.
func manProse(text string) string {
	var b strings.Builder
	for _, part := range strings.Split(text, "\n\n") {
		var table []string
		prose := []string{}
		for _, line := range strings.Split(part, "\n") {
			if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
				table = append(table, line)
			} else {
				prose = append(prose, roff(line))
			}
		}
		fmt.Fprintf(&b, ".PP\n%s\n", strings.Join(prose, "\n"))
		if len(table) > 0 {
			b.WriteString(verbatim(layout.Prose(strings.Join(table, "\n"), manWidth)))
		}
	}
	return b.String()
}

func verbatim(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = roff(line)
	}
	return ".PP\n.nf\n" + strings.Join(lines, "\n") + "\n.fi\n"
}

// manFlags shows flags as help does.
func manFlags(w io.Writer, heading, usages string) {
	if usages != "" {
		fmt.Fprintf(w, ".SH %s\n%s", heading, verbatim(usages))
	}
}

// roff escapes troff's special characters.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
