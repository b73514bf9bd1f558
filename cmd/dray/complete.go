// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/experiments"
	"github.com/drayage/dray/images"
	"github.com/drayage/dray/internal/function/lab"
	"github.com/drayage/dray/internal/host"
	transports "github.com/drayage/dray/internal/link/all"
	"github.com/drayage/dray/internal/measure/published"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/explain"
)

// words lists an argument's possible values, given the arguments before it. It
// hides read errors: a shell shows none during completion.
type words func(before []string) []string

// complete sets up completion of all arguments, and of flags with named values.
func (a *app) complete(root *cobra.Command) {
	for name, arguments := range map[string][]words{
		"status": {a.chainNames}, "verify": {a.chainNames}, "down": {a.chainNames}, "daemon": {a.chainNames}, "top": {a.chainNames},
		"logs": {a.chainNames, a.functionNames}, "exec": {a.chainNames, a.functionNames},
		"capture":   {a.chainNames, a.portNames},
		"relink":    {a.chainNames, a.linkNames, transportNames},
		"calibrate": {transportNames},
		"image":     {func([]string) []string { return images.Names() }},
		"explain":   {func([]string) []string { return explain.Paths() }},
		"doctor":    {}, "gc": {}, "metrics": {}, "version": {},
	} {
		command(root, name).ValidArgsFunction = completeWords(arguments)
	}
	for _, name := range []string{"plan", "up", "run", "apply", "export"} {
		command(root, name).ValidArgsFunction = completeFile("yaml", "yml")
	}
	command(root, "import").ValidArgsFunction = completeFile("yaml", "yml", "csar", "zip")
	command(root, "bench").ValidArgsFunction = completeMatrix
	for name, flags := range map[string]map[string][]string{
		"run":     {"profile": profileNames()},
		"verify":  {"profile": profileNames()},
		"bench":   {"profile": experimentProfiles(), "containers": {string(chain.RuntimeRunc), string(chain.RuntimeDocker)}},
		"init":    {"face": slices.Sorted(maps.Keys(faceTexts)), "runtime": slices.Sorted(maps.Keys(runtimeTexts))},
		"lab":     {"need": lab.Features()},
		"doctor":  {"hugepages": {leaveOut}, "isolate": {leaveOut}, "governor": {"performance", leaveOut}, "bind": uplinkNames()},
		"compare": {"format": {formatText, formatJSON, formatBenchstat}},
		"":        {"color": {colorAuto, colorAlways, colorNever}},
	} {
		for flag, values := range flags {
			completeFlag(command(root, name), flag, values)
		}
	}
}

// command is the command of that name; "" is the root.
func command(root *cobra.Command, name string) *cobra.Command {
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	if i < 0 {
		return root
	}
	return root.Commands()[i]
}

func completeFlag(cmd *cobra.Command, flag string, values []string) {
	// It fails only for a missing flag, and a test would show that.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func completeWords(arguments []words) cobra.CompletionFunc {
	return func(_ *cobra.Command, before []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(before) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return arguments[len(before)](before), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFile completes one file with any of the extensions.
func completeFile(extensions ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, before []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(before) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}

// completeMatrix offers the built-in ones; a shell adds file names.
func completeMatrix(_ *cobra.Command, before []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(before) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return append([]string{"quick"}, experiments.BuiltIn()...), cobra.ShellCompDirectiveDefault
}

func (a *app) chainNames([]string) []string {
	n, err := a.node()
	if err != nil {
		return nil
	}
	return n.Names()
}

func (a *app) functionNames(before []string) []string {
	var names []string
	if live, err := a.open(before[0]); err == nil {
		for _, f := range live.Chain.Functions {
			names = append(names, f.Name)
		}
	}
	return names
}

func (a *app) portNames(before []string) []string {
	var names []string
	if live, err := a.open(before[0]); err == nil {
		for _, f := range live.Chain.Functions {
			for _, p := range f.Ports {
				names = append(names, f.Name+"."+p.Name)
			}
		}
	}
	return names
}

func (a *app) linkNames(before []string) []string {
	var names []string
	if live, err := a.open(before[0]); err == nil {
		for _, l := range live.Chain.Links {
			names = append(names, l.Name)
		}
	}
	return names
}

func transportNames([]string) []string {
	var names []string
	for _, t := range transports.All() {
		names = append(names, t.Name())
	}
	return names
}

// uplinkNames are the interfaces that could have a network card.
func uplinkNames() []string {
	var names []string
	links, _ := host.Uplinks() // without them, a shell offers nothing
	for _, l := range links {
		names = append(names, l.Name)
	}
	return names
}

func profileNames() []string {
	return []string{string(verify.Quick), string(verify.Standard), string(verify.Thorough)}
}

func experimentProfiles() []string {
	var names []string
	for _, p := range published.Profiles {
		names = append(names, p.Name)
	}
	return names
}
