// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// Move replaces the transport of a link whose ports libdray opens, under traffic:
// to is the newly planned link. Its ports stay, and the applications see a new
// generation. The caller holds the chain's lock. On an error the link is unchanged,
// unless the error says otherwise.
func (l *Live) Move(ctx context.Context, to plan.Link) error {
	claimed := l.State.Claimed
	if err := l.claim(ctx, slices.Concat(claimed, to.CPUs), l.State.Coming); err != nil {
		return err
	}
	err := l.move(ctx, to)
	l.State.Claimed = claimed
	return errors.Join(err, l.save())
}

// move is Move on CPUs that the chain has claimed.
func (l *Live) move(ctx context.Context, to plan.Link) (err error) {
	from := l.State.Plan.Link(to.Name)
	if from == nil {
		return fmt.Errorf("chain %s has no link %q", l.Chain.Name, to.Name)
	}
	if err := checkMove(from, &to); err != nil {
		return err
	}
	moves := l.State.Moves[to.Name]
	old, err := l.buildLink(*from, moves.At, false)
	if err != nil {
		return err
	}
	back, err := l.buildLink(*from, moves.At, true)
	if err != nil {
		return err
	}
	moves.Tried++
	build, err := l.buildLink(to, moves.Tried, true)
	if err != nil {
		return err
	}
	// Before making anything: a number is used once, whatever a killed dray left.
	if err := l.saveMoves(to.Name, moves); err != nil {
		return err
	}
	j, err := openJournal(l.node.journalFile(l.Chain.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	runner, asked := l.node.runner(j), false
	last := &build.Steps[len(build.Steps)-1]
	ask := last.Do
	last.Do = func(ctx context.Context) error {
		asked = true
		return ask(ctx)
	}
	if err := runner.Run(ctx, build.Steps); err != nil {
		if asked { // the broker may have begun
			err = errors.Join(err, back.Steps[len(back.Steps)-1].Do(context.WithoutCancel(ctx)))
		}
		return err
	}
	moves.At = moves.Tried
	*from, l.State.Reports[to.Name] = to, build.Report
	if err := l.saveMoves(to.Name, moves); err != nil {
		return fmt.Errorf("link %s has moved to %s, but: %w", to.Name, to.Transport, err)
	}
	if err := runner.Remove(context.WithoutCancel(ctx), ownResources(old)); err != nil {
		return fmt.Errorf("link %s has moved to %s, but its old transport remains until dray down %s: %w", to.Name, to.Transport, l.Chain.Name, err)
	}
	return nil
}

// checkMove refuses to take a port away from its application.
func checkMove(from, to *plan.Link) error {
	for i, e := range from.Ends {
		switch {
		case e.Uplink != "" || e.Brokered() && to.Ends[i].Brokered():
		case e.Brokered():
			return fmt.Errorf("link %s cannot move to %s, which uses DPDK devices of its own; name a transport that serves native ports", to.Name, to.Transport)
		case e.Face == chain.FaceDPDK:
			return fmt.Errorf("link %s cannot move: its port %s is a DPDK device that only %s has; only ports opened by net_dray or libdray can move", to.Name, e, from.Transport)
		default:
			return fmt.Errorf("link %s cannot move: its port %s is an interface that its transport made; use face: native", to.Name, e)
		}
	}
	return nil
}

// ownResources are the resources of a link's transport, without its ports'.
func ownResources(b *transport.Build) []step.Resource {
	var all []step.Resource
	for _, s := range b.Steps {
		for _, r := range s.Makes {
			if !slices.Contains(b.Keeps, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

func (l *Live) saveMoves(link string, m Moves) error {
	if l.State.Moves == nil {
		l.State.Moves = map[string]Moves{}
	}
	l.State.Moves[link] = m
	return writeJSON(filepath.Join(l.dir, fileState), l.State)
}
