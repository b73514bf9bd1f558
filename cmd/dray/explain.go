// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/spec/explain"
	"github.com/drayage/dray/internal/spec/layout"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [FIELD]",
		Short: "Explain a field of a chain file",
		Long: "Print the meaning of a chain file's field and its allowed values. FIELD is a path from the chain, such as\n" +
			"functions.ports, or from one of its objects, such as link.requires.latency. Without FIELD, the chain's own\n" +
			"fields are listed.",
		Example: "  dray explain\n  dray explain link.requires.latency\n  dray explain port --json",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, argv []string) error {
			field, err := explain.Find(strings.Join(argv, ""))
			if err != nil {
				return usageError("%v", err)
			}
			if a.json {
				return a.printJSON(schemaField, field)
			}
			return a.printText(func(w io.Writer, width int) error { return printField(w, width, field) })
		},
	}
}

func printField(w io.Writer, width int, f explain.Field) error {
	title := f.Path
	if title == "" {
		title = "chain"
	}
	if f.Required {
		title += " (required)"
	}
	paragraphs := []string{title, "  " + f.Description, "  " + f.Value}
	if len(f.OneOf) > 0 {
		paragraphs = append(paragraphs, "  One of: "+strings.Join(f.OneOf, ", "))
	}
	if f.Default != nil {
		paragraphs = append(paragraphs, fmt.Sprintf("  Default: %v", f.Default))
	}
	for _, text := range paragraphs {
		if strings.TrimSpace(text) != "" {
			fmt.Fprintln(w, strings.Join(layout.Wrap(text, width), "\n"))
		}
	}
	if len(f.Fields) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	var t layout.Table
	for _, field := range f.Fields {
		name := "  " + field.Path
		if field.Required {
			name += " *"
		}
		t.Add(name, field.Description)
	}
	if err := t.Write(w, width); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n* is required")
	return err
}
