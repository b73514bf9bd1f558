// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
)

// read is the claim of a pod as this node keeps it. instance is the pod's instance of its
// function; "" if that has none.
func read(c *resourcev1.ResourceClaim, pod *corev1.Pod, instance string) (claims.Claim, error) {
	kept := claims.Claim{
		UID: c.UID, Namespace: c.Namespace, Name: c.Name, Pod: pod.Name, PodUID: pod.UID,
		UserNamespace: pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers,
	}
	var err error
	if kept.User, err = userOf(pod, c.Name); err != nil {
		return kept, err
	}
	if c.Status.Allocation == nil {
		return kept, errors.New("the claim is not allocated")
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.Driver != v1alpha1.Driver {
			continue
		}
		parameters, err := parametersOf(c.Status.Allocation.Devices.Config, r.Request, instance)
		if err != nil {
			return kept, fmt.Errorf("request %s: %w", r.Request, err)
		}
		if err := errors.Join(checkLink(&parameters.Link), checkAcross(parameters.Across)); err != nil {
			return kept, err
		}
		kept.Ports = append(kept.Ports, claims.Port{PortParameters: *parameters, Request: r.Request, Pool: r.Pool, Device: r.Device, ShareID: r.ShareID})
	}
	if kept.Interfaces() && pod.Spec.HostNetwork {
		return kept, errors.New("the pod has the network of its node (hostNetwork), which gets no interfaces: remove that, or use face: native")
	}
	kept.DPDK, err = settingOf(pod, &kept)
	return kept, err
}

// parametersOf are the parameters of one request, for the instance if there are several.
func parametersOf(all []resourcev1.DeviceAllocationConfiguration, request, instance string) (*v1alpha1.PortParameters, error) {
	for _, c := range all {
		if !isOurs(&c) || len(c.Requests) > 0 && !slices.Contains(c.Requests, request) {
			continue
		}
		p, err := v1alpha1.ParsePortParameters(c.Opaque.Parameters.Raw)
		if err != nil || p.Of == "" || p.Function == instance {
			return p, err
		}
	}
	if instance != "" {
		return nil, fmt.Errorf("its template had no instance %s yet: replace the pod", instance)
	}
	return nil, errors.New("it has no PortParameters: take the claim from the template that the operator made for the function")
}

// firstInstance are the parameters of the first instance that a claim could be; nil if its
// function has none.
func firstInstance(c *resourcev1.ResourceClaim) *v1alpha1.PortParameters {
	if c.Status.Allocation == nil {
		return nil
	}
	for _, config := range c.Status.Allocation.Devices.Config {
		if !isOurs(&config) {
			continue
		}
		if p, err := v1alpha1.ParsePortParameters(config.Opaque.Parameters.Raw); err == nil && p.Of != "" {
			return p
		}
	}
	return nil
}

// isOurs reports whether a configuration comes from the claim and is for this driver.
func isOurs(c *resourcev1.DeviceAllocationConfiguration) bool {
	return c.Opaque != nil && c.Opaque.Driver == v1alpha1.Driver && c.Source == resourcev1.AllocationConfigSourceClaim
}

// userOf is the uid with which the pod's containers open the claim's ports. A
// socket belongs to one user, so all must have the same.
func userOf(pod *corev1.Pod, claim string) (int, error) {
	reference := referenceOf(pod, claim)
	if reference == "" {
		return 0, fmt.Errorf("pod %s does not reference claim %s", pod.Name, claim)
	}
	user := int64(-1)
	for _, c := range containersWith(pod, reference) {
		runAs := runAsUser(pod, &c)
		if runAs == nil {
			return 0, fmt.Errorf("container %s of pod %s has no runAsUser: set it, because only that user can open the ports", c.Name, pod.Name)
		}
		if user >= 0 && user != *runAs {
			return 0, fmt.Errorf("two containers of pod %s use the ports with users %d and %d: a port belongs to one user", pod.Name, user, *runAs)
		}
		user = *runAs
	}
	if user < 0 {
		return 0, fmt.Errorf("no container of pod %s uses claim %s: add {name: %s} to its resources.claims", pod.Name, claim, reference)
	}
	return int(user), nil
}

// containersWith are the containers that use a claim, by the pod's name for it.
func containersWith(pod *corev1.Pod, reference string) []corev1.Container {
	return slices.DeleteFunc(append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...), func(c corev1.Container) bool {
		return !slices.ContainsFunc(c.Resources.Claims, func(r corev1.ResourceClaim) bool { return r.Name == reference })
	})
}

// referenceOf is the pod's own name for a claim; "" if it has none.
func referenceOf(pod *corev1.Pod, claim string) string {
	for _, r := range pod.Spec.ResourceClaims {
		if claimName(pod, r) == claim {
			return r.Name
		}
	}
	return ""
}

// claimName is the claim behind a pod's reference; "" if it is not made yet.
func claimName(pod *corev1.Pod, r corev1.PodResourceClaim) string {
	if r.ResourceClaimName != nil {
		return *r.ResourceClaimName
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.Name == r.Name && s.ResourceClaimName != nil {
			return *s.ResourceClaimName
		}
	}
	return ""
}

func runAsUser(pod *corev1.Pod, c *corev1.Container) *int64 {
	if c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
		return c.SecurityContext.RunAsUser
	}
	if pod.Spec.SecurityContext != nil {
		return pod.Spec.SecurityContext.RunAsUser
	}
	return nil
}
