// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"

	"github.com/drayage/dray/internal/host/step"
)

// Removers removes every kind of resource that this package makes.
func Removers() step.Removers {
	return step.Removers{
		KindNetns:     func(_ context.Context, r step.Resource) error { return removeNamespace(r.Path) },
		KindMount:     func(_ context.Context, r step.Resource) error { return unmountAll(r.Path) },
		KindDir:       func(_ context.Context, r step.Resource) error { return removeDir(r.Path) },
		KindLink:      func(_ context.Context, r step.Resource) error { return removeLink(r) },
		KindCgroup:    func(ctx context.Context, r step.Resource) error { return removeCgroup(ctx, r.Path) },
		KindVF:        giveBackVF,
		KindHierarchy: func(_ context.Context, r step.Resource) error { return releaseHierarchy(r.Name) },

		// These three are on interfaces that outlive the link.
		KindQdisc:   func(_ context.Context, r step.Resource) error { return removeQdisc(r) },
		KindAddress: func(_ context.Context, r step.Resource) error { return removeAddress(r) },
		KindAltName: func(_ context.Context, r step.Resource) error { return removeAltName(r) },
	}
}
