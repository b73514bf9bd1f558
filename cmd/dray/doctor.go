// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/host/prepare"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/layout"
	"github.com/drayage/dray/internal/spec/units"
)

const doctorLong = `Show what this host can do, what is missing, and how to fix it.

With --fix, show instead how this host could be prepared for fast packet processing: huge pages, CPUs that programs and
interrupts leave free, the frequency governor and, for the network cards named with --bind, the driver vfio-pci. Nothing
changes until --apply is given as well. --revert gives every setting its former value, and leaves alone what something else
has changed since.

Settings end with a reboot. What only the kernel's command line can set is printed, never written.`

const doctorExample = `  dray doctor
  dray doctor --fix                                   what would change
  dray doctor --fix --apply --hugepages 2Mi=2Gi --isolate 2-7
  dray doctor --fix --bind eth1                       would eth1 do for DPDK?
  dray doctor --revert`

// leaveOut is the value of a preparation that is not wanted.
const leaveOut = "none"

// preparation is the command line of `dray doctor --fix`.
type preparation struct {
	fix, apply, revert bool
	hugePages, bind    []string
	isolate, governor  string
}

func (a *app) doctorCommand() *cobra.Command {
	var p preparation
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Show what this host can do, what is missing, and how to fix it",
		Long:    doctorLong,
		Example: doctorExample,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(cmd); err != nil {
				return err
			}
			if p.fix || p.revert {
				return a.prepareHost(cmd, &p)
			}
			return a.showHost(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&p.fix, "fix", false, "show how to prepare this host; change nothing")
	f.BoolVar(&p.apply, "apply", false, "with --fix: make the changes (as root)")
	f.BoolVar(&p.revert, "revert", false, "undo the changes of --apply (as root)")
	f.StringSliceVar(&p.hugePages, "hugepages", nil, "with --fix: memory in huge pages of a `SIZE=AMOUNT`, such as 2Mi=1Gi, or none (default 2Mi=1Gi, less on a small machine)")
	f.StringVar(&p.isolate, "isolate", "", "with --fix: the `CPUS` to keep free, such as 2-7, or none (default all but two cores)")
	f.StringVar(&p.governor, "governor", "performance", "with --fix: the frequency `GOVERNOR`, or none to leave it")
	f.StringSliceVar(&p.bind, "bind", nil, "with --fix: give a network `CARD`, an interface or PCI address, to vfio-pci")
	return cmd
}

// check refuses flags that do not go together.
func (p *preparation) check(cmd *cobra.Command) error {
	if p.fix && p.revert {
		return usageError("--fix and --revert exclude each other")
	}
	for _, name := range []string{"apply", "hugepages", "isolate", "governor", "bind"} {
		if cmd.Flags().Changed(name) && !p.fix {
			return usageError("--%s goes with --fix", name)
		}
	}
	return nil
}

func (a *app) showHost(ctx context.Context) error {
	a.progress("Trying every transport, runtime, qdisc and instrument")
	n, err := a.node()
	if err != nil {
		return err
	}
	inv, err := a.inspect(ctx, n)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(schemaInventory, inv)
	}
	return a.printText(func(w io.Writer, width int) error { return doctor.Text(w, inv, width) })
}

// prepareHost plans, makes or undoes the preparation, and prints what became of it
// even if a part failed.
func (a *app) prepareHost(cmd *cobra.Command, p *preparation) error {
	if (p.apply || p.revert) && os.Geteuid() != 0 {
		return a.mustBeRoot(cmd)
	}
	stateDir, err := node.StateDir()
	if err != nil {
		return err
	}
	system, err := prepare.Host()
	if err != nil {
		return err
	}
	report, err := p.run(cmd.Context(), system, stateDir)
	if report == nil {
		return err
	}
	return errors.Join(err, a.printPreparation(report, p))
}

func (p *preparation) run(ctx context.Context, s *prepare.System, stateDir string) (*prepare.Report, error) {
	if p.revert {
		return s.Revert(ctx, stateDir)
	}
	request, err := p.request(s)
	if err != nil {
		return nil, err
	}
	if p.apply {
		return s.Apply(ctx, stateDir, request)
	}
	return s.Plan(request)
}

// request is what was asked for, with this host's defaults for the rest.
func (p *preparation) request(s *prepare.System) (r prepare.Request, err error) {
	if r.HugePages, err = parsePages(p.hugePages); err != nil {
		return r, err
	}
	if len(p.hugePages) == 0 {
		r.HugePages = s.DefaultHugePages()
	}
	switch p.isolate {
	case "":
		r.Isolate = s.DefaultIsolation()
	case leaveOut:
	default:
		if r.Isolate, err = cpulist.Parse(p.isolate); err != nil {
			return r, usageError("--isolate: %v", err)
		}
	}
	if p.governor != leaveOut {
		r.Governor = p.governor
	}
	r.Bind = p.bind
	return r, nil
}

// parsePages reads SIZE=AMOUNT; none are wanted with "none".
func parsePages(texts []string) ([]prepare.Pages, error) {
	var all []prepare.Pages
	for _, text := range texts {
		if text == leaveOut {
			return nil, nil
		}
		left, right, _ := strings.Cut(text, "=")
		size, err1 := units.ParseBytes(left)
		amount, err2 := units.ParseBytes(right)
		if err := errors.Join(err1, err2); err != nil {
			return nil, usageError("--hugepages %s: write something like 2Mi=1Gi", text)
		}
		if size < 1<<10 || amount%size != 0 {
			return nil, usageError("--hugepages %s: %s is not a whole number of %s pages", text, amount, size)
		}
		all = append(all, prepare.Pages{Size: uint64(size), Count: int(amount / size)})
	}
	return all, nil
}

func (a *app) printPreparation(report *prepare.Report, p *preparation) error {
	if a.json {
		return a.printJSON(schemaPreparation, report)
	}
	return a.printText(func(w io.Writer, width int) error {
		if err := report.Text(w, width); err != nil {
			return err
		}
		if len(report.Changes)+len(report.Skipped) > 0 {
			fmt.Fprintln(w)
		}
		_, err := fmt.Fprintln(w, strings.Join(layout.Wrap(p.outcome(report), width), "\n"))
		return err
	})
}

// outcome is the last line: what a user does next.
func (p *preparation) outcome(report *prepare.Report) string {
	switch {
	case p.revert && len(report.Changes) == 0:
		return "There is nothing to undo: no setting was changed since this host booted."
	case p.revert:
		return "The settings above have their former values, unless the outcome says otherwise."
	case len(report.Changes) == 0:
		return "There is nothing to change."
	case p.apply:
		return "`dray doctor --revert` undoes this, and so does a reboot."
	}
	return "Nothing was changed. `dray doctor --fix --apply`, with the same options, makes these changes; `dray doctor --revert` undoes them."
}
