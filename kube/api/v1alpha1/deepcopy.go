// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject copies the chain, as caches need it.
func (c *Chain) DeepCopyObject() runtime.Object { return c.DeepCopy() }

// DeepCopy copies the chain.
func (c *Chain) DeepCopy() *Chain {
	to := &Chain{TypeMeta: c.TypeMeta, Status: c.Status.deepCopy()}
	c.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	c.Spec.DeepCopyInto(&to.Spec)
	return to
}

// DeepCopyObject copies the list, as caches need it.
func (l *ChainList) DeepCopyObject() runtime.Object {
	to := &ChainList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&to.ListMeta)
	for i := range l.Items {
		to.Items = append(to.Items, *l.Items[i].DeepCopy())
	}
	return to
}

func (s ChainStatus) deepCopy() ChainStatus {
	s.Conditions = append([]metav1.Condition(nil), s.Conditions...)
	s.Instances = append([]InstanceStatus(nil), s.Instances...)
	s.Placement = append([]FunctionPlacement(nil), s.Placement...)
	s.Links = append([]LinkStatus(nil), s.Links...)
	for i := range s.Links {
		l := &s.Links[i]
		if l.Limits != nil {
			limits := *l.Limits
			l.Limits = &limits
		}
		l.Ends = append([]EndStatus(nil), l.Ends...)
		l.Requirements = append([]metav1.Condition(nil), l.Requirements...)
	}
	s.Paths = append([]PathStatus(nil), s.Paths...)
	for i := range s.Paths {
		p := &s.Paths[i]
		p.Links = append([]string(nil), p.Links...)
		p.Requirements = append([]metav1.Condition(nil), p.Requirements...)
	}
	return s
}
