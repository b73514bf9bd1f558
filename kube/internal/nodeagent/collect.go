// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/kube/internal/claims"
)

// Collect removes what no claim of this node owns any more: the pod was
// deleted while no daemon ran, or a daemon was killed halfway.
func (a *Agent) Collect(ctx context.Context) error {
	all, err := a.store.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i := range all {
		gone, err := a.gone(ctx, &all[i])
		if err == nil && gone {
			a.o.Log.Info("collected", "claim", all[i].Namespace+"/"+all[i].Name)
			err = a.unprepare(ctx, all[i].UID)
		}
		errs = append(errs, err)
	}
	errs = append(errs, a.collectSpecs(ctx), a.collectAside(ctx))
	return errors.Join(errs...)
}

// collectAside removes what is set aside of claims that no pod of this node has any more: the
// kubelet may have given up unpreparing them.
func (a *Agent) collectAside(ctx context.Context) error {
	aside, err := a.store.Aside()
	if err != nil || len(aside) == 0 {
		return err
	}
	had, err := a.claimsOfPods(ctx)
	if err != nil {
		return err
	}
	for _, uid := range aside {
		if !had[uid] {
			err = errors.Join(err, a.store.Forget(ctx, uid))
		}
	}
	return err
}

// claimsOfPods are the claims of this node's pods.
func (a *Agent) claimsOfPods(ctx context.Context) (map[types.UID]bool, error) {
	pods, err := a.o.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + a.o.Node})
	if err != nil {
		return nil, err
	}
	had := map[types.UID]bool{}
	for i := range pods.Items {
		p := &pods.Items[i]
		for _, r := range p.Spec.ResourceClaims {
			name := claimName(p, r)
			if name == "" { // not made yet
				continue
			}
			c, err := a.o.Client.ResourceV1().ResourceClaims(p.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				had[c.UID] = true
			} else if !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
	}
	return had, nil
}

// gone reports whether a claim no longer exists or no pod has it.
func (a *Agent) gone(ctx context.Context, c *claims.Claim) (bool, error) {
	now, err := a.o.Client.ResourceV1().ResourceClaims(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	return now.UID != c.UID || now.Status.Allocation == nil || len(now.Status.ReservedFor) == 0, nil
}

// collectSpecs removes CDI devices of claims that are not prepared.
func (a *Agent) collectSpecs(ctx context.Context) error {
	return a.store.Use(ctx, func(all []claims.Claim) error {
		uids, err := a.specs.list()
		if err != nil {
			return err
		}
		var errs []error
		for _, uid := range uids {
			if !slices.ContainsFunc(all, func(c claims.Claim) bool { return c.UID == uid }) {
				errs = append(errs, a.specs.remove(uid))
			}
		}
		return errors.Join(errs...)
	})
}
