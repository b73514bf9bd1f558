// SPDX-License-Identifier: Apache-2.0

package chainrun

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Interrupted finds the newest unfinished run below a directory; "" if there is none.
func Interrupted(parent string) string {
	files, err := filepath.Glob(filepath.Join(parent, "*", report.RunFile))
	if err != nil {
		return ""
	}
	newest, found := time.Time{}, ""
	for _, file := range files {
		dir := filepath.Dir(file)
		run, err := report.LoadRun(dir)
		if err == nil && run.Resumable() && run.Started.After(newest) && !rundir.AtWork(dir) {
			newest, found = run.Started, dir
		}
	}
	return found
}

// Resume opens an interrupted run's directory. prepare plans its chain file for
// the host's current state.
func Resume(path string, by report.Program, prepare func(file string) (Job, error)) (_ *Run, err error) {
	dir, err := layout.Resume(path)
	if err != nil {
		return nil, err
	}
	r := &Run{Path: path, state: dir.Run, dir: dir}
	defer func() {
		if err != nil {
			dir.Close()
		}
	}()
	switch {
	case dir.Run.Cluster != nil:
		return nil, fmt.Errorf("%s is of a chain in a cluster: `%s` measures it again", path, dir.Run.Command())
	case !dir.Run.Resumable():
		return nil, fmt.Errorf("%s is of a chain that was up already: `dray verify %s` measures it again", path, dir.Run.Chain)
	}
	before, err := report.Load(path)
	if err != nil {
		return nil, err
	}
	if r.Job, err = prepare(filepath.Join(path, report.ChainFile)); err != nil {
		return nil, err
	}
	if before.Inventory == nil {
		return nil, fmt.Errorf("%s has no %s: so dray cannot compare this host with the one of the run", path, report.InventoryFile)
	}
	if err := rundir.SameConditions(path, before.Inventory.Host, r.Inventory.Host, report.Program{Dray: dir.Run.Dray, Build: dir.Run.Build}, by); err != nil {
		return nil, err
	}
	if err := samePlan(path, &before.Plan, r.Plan); err != nil {
		return nil, err
	}
	if err := samePrograms(path, before.Inventory, r.Inventory, r.Plan); err != nil {
		return nil, err
	}
	r.Options = verify.Options{Profile: verify.Profile(dir.Run.Profile), Duration: dir.Run.Trial, Rounds: dir.Run.Rounds, Seed: dir.Run.Seed}
	return r, nil
}

// samePlan refuses a plan that would measure something else than the run did.
func samePlan(path string, was, is *plan.Plan) error {
	old, now := essentials(was), essentials(is)
	for name, text := range old {
		if now[name] != text {
			return fmt.Errorf("%s: %s is planned differently now: figures of two plans do not mix; start a new run", filepath.Join(path, report.ChainFile), name)
		}
	}
	if !reflect.DeepEqual(keys(old), keys(now)) {
		return fmt.Errorf("%s no longer has the functions and links of the run: start a new run", filepath.Join(path, report.ChainFile))
	}
	return nil
}

// samePrograms refuses other versions of the programs that measure, run the functions
// or carry the links.
func samePrograms(path string, was, is *inventory.Inventory, p *plan.Plan) error {
	old, now := versions(was, p), versions(is, p)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if old[name] != now[name] {
			return otherVersion(path, name, old[name], now[name])
		}
	}
	return nil
}

func otherVersion(path, name, was, is string) error {
	return fmt.Errorf("%s was begun with %s %q, now %q: figures of two versions do not mix; start a new run", path, name, was, is)
}

// versions are the programs of a plan, by kind and name.
func versions(inv *inventory.Inventory, p *plan.Plan) map[string]string {
	all := map[string]string{}
	for _, i := range inv.Instruments {
		all["instrument "+i.Name] = i.Version
	}
	for _, f := range p.Functions {
		if i := inventory.Find(inv.Runtimes, string(f.Runtime)); i != nil {
			all["runtime "+i.Name] = i.Version
		}
	}
	for _, l := range p.Links {
		if t := inv.Transport(l.Transport); t != nil {
			all["transport "+t.Name] = t.Version
		}
	}
	return all
}

// sameEngines refuses other engines of links, which are known once the chain is up.
func sameEngines(path string, was, is []report.Link) error {
	for _, old := range was {
		for _, now := range is {
			if old.Name == now.Name && old.Engine != now.Engine {
				return otherVersion(path, "engine of link "+old.Name, old.Engine, now.Engine)
			}
		}
	}
	return nil
}

// essentials are a plan's functions and links, without its reasons.
func essentials(p *plan.Plan) map[string]string {
	texts := map[string]string{}
	add := func(name string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte(err.Error())
		}
		texts[name] = string(text)
	}
	for _, f := range p.Functions {
		f.Reason = ""
		add("function "+f.Name, f)
	}
	for _, l := range p.Links {
		l.Reason, l.Rejected, l.Evidence = "", nil, nil
		add("link "+l.Name, l)
	}
	return texts
}

func keys(m map[string]string) map[string]bool {
	names := map[string]bool{}
	for name := range m {
		names[name] = true
	}
	return names
}
