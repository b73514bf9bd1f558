// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
)

// TunSteps makes the function's TUN interfaces in its namespace, with which they end. When
// the step runs, user returns the host uid of the function's command.
func (s Spec) TunSteps(user func(context.Context) (int, error)) []step.Step {
	if len(s.Function.Tuns) == 0 {
		return nil
	}
	return []step.Step{{
		Name: s.Function.Name + ": create TUN interfaces",
		Do:   func(ctx context.Context) error { return s.RenewTuns(ctx, user) },
	}}
}

// RenewTuns replaces TUN interfaces before the command starts again. It leaves those alone
// that another program of the function uses.
func (s Spec) RenewTuns(ctx context.Context, user func(context.Context) (int, error)) error {
	if len(s.Function.Tuns) == 0 {
		return nil
	}
	owner, err := user(ctx)
	if err != nil {
		return err
	}
	for _, t := range s.Function.Tuns {
		if err := s.Netns().RenewTun(host.Tun{Name: t.Name, IP: t.IP, MTU: t.MTU, Owner: owner}); err != nil {
			return fmt.Errorf("function %s: %w", s.Function.Name, err)
		}
	}
	return nil
}
