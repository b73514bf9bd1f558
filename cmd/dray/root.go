// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	runtimes "github.com/drayage/dray/internal/function/all"
	transports "github.com/drayage/dray/internal/link/all"
	"github.com/drayage/dray/internal/node"
)

const rootLong = `Drayage gives each function of a containerised user plane virtual ports, picks
the fastest transport that placement and isolation permit, and proves by
measurement that each link meets its throughput, latency, jitter and loss
requirements.

Exit codes:
  0  success; for run and verify: every requirement was met
  1  error
  2  wrong usage
  3  infeasible: this host cannot do what the chain requires; nothing was started
  4  a requirement was measured and missed
  5  no requirement was missed, but some were not measurable
  130 (Ctrl-C), 143 (SIGTERM), 129 (SIGHUP): ended by a signal

State is kept in /run/dray; DRAY_STATE names another directory.

These work without root: doctor, plan, report, compare, import, export,
bench --list and bench --dry-run. doctor and plan then mark what they could
not try.

With --json, every command prints one object on standard output, even if it
fails. docs/json.md lists the objects.`

const rootExample = `  dray doctor                          what this host can do
  dray plan examples/f1-split.yaml     what would be done, and why
  dray run examples/f1-split.yaml      measure and judge, then take down
  dray up examples/f1-split.yaml       bring up and leave running
  dray verify f1-split                 measure the links of a running chain`

// app is shared command state.
type app struct {
	out, err io.Writer
	argv     []string // the whole command line, without the program's name
	json     bool
	printed  bool // a document is printed, see printJSON
	quiet    bool
	verbose  bool
	explain  bool // plans list the alternatives
	color    colorMode
	silence  silence
}

func newRoot(a *app) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:           "dray",
		Short:         "Virtual ports for containerised user planes, with proof",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.checkRoot(cmd, os.Geteuid())
		},
		RunE: func(cmd *cobra.Command, argv []string) error {
			if showVersion {
				return a.printVersion()
			}
			return rootRun(cmd, argv)
		},

		SuggestionsMinimumDistance: 2,
	}
	a.commonFlags(root)
	root.Flags().BoolVar(&showVersion, "version", false, "print the version, its date and the DPDK ABI")
	root.AddCommand(
		a.doctorCommand(), a.planCommand(), forRoot(a.runCommand()), forRoot(a.upCommand()), forRoot(a.applyCommand()), forRoot(a.statusCommand()),
		forRoot(a.verifyCommand()), forRoot(a.logsCommand()), forRoot(a.execCommand()), forRoot(a.relinkCommand()),
		forRoot(a.downCommand()), forRoot(a.gcCommand()),
		a.reportCommand(), a.compareCommand(), forRoot(a.benchCommand(), "list", "dry-run"), forRoot(a.calibrateCommand()),
		forRoot(a.topCommand()), forRoot(a.captureCommand()), forRoot(a.traceCommand()), forRoot(a.metricsCommand()), forRoot(a.imageCommand(), withoutArguments),
		forRoot(a.daemonCommand()), forRoot(a.labCommand()),
		a.superviseCommand(), a.keepOutputCommand(), a.relayCommand(), a.spinCommand(), a.pauseCommand(),
		a.versionCommand(), a.manCommand(), a.initCommand(), a.explainCommand(), a.importCommand(), a.exportCommand(),
	)
	a.complete(root)
	a.fitHelp(root)
	return root
}

// commonFlags are the flags of all commands.
func (a *app) commonFlags(root *cobra.Command) {
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print the result as JSON")
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "print no progress on standard error")
	a.color = colorAuto
	root.PersistentFlags().Var(&a.color, "color", "colour verdicts and statuses: auto, always or never")
	root.PersistentFlags().BoolFuncP("verbose", "v", "log probes, steps and commands on standard error", func(string) error {
		a.verbose = true
		logTo(a.err)
		return nil
	})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		a.json = a.json || slices.Contains(a.argv, "--json") // it may follow the flag that is wrong
		return usageError("%v; see `%s --help`", err, cmd.CommandPath())
	})
}

// rootRun handles a missing or unknown command.
func rootRun(cmd *cobra.Command, argv []string) error {
	if len(argv) == 0 {
		return cmd.Help()
	}
	hint := fmt.Sprintf("`%s --help` lists the commands", cmd.CommandPath())
	if near := cmd.SuggestionsFor(argv[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError("unknown command %q; %s", argv[0], hint)
}

// args makes a wrong number of arguments a usage error.
func args(want cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, got []string) error {
		if err := want(cmd, got); err != nil {
			return usageError("%s; usage: %s", misfit(want, cmd, got), cmd.UseLine())
		}
		return nil
	}
}

// misfit is what is wrong with the number of arguments.
func misfit(want cobra.PositionalArgs, cmd *cobra.Command, got []string) string {
	for n := len(got) - 1; n >= 0; n-- {
		if want(cmd, got[:n]) == nil {
			return fmt.Sprintf("the argument %q is too many", got[n])
		}
	}
	return "an argument is missing"
}

// node is this host's chains.
func (a *app) node() (*node.Node, error) {
	dir, err := node.StateDir()
	if err != nil {
		return nil, err
	}
	return &node.Node{
		StateDir:   dir,
		Transports: transports.All(),
		Runtimes:   runtimes.All(),
		Progress:   func(text string) { a.progress("  %s", text) },
		Kept:       a.warnOfKept,
	}, nil
}

// open reads a running chain.
func (a *app) open(name string) (*node.Live, error) {
	n, err := a.node()
	if err != nil {
		return nil, err
	}
	return n.Open(name)
}
