// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fields of a pod's spec that its copy has, and those that it has not, because it is placed, bounded and identified
// otherwise. With any other field there is no copy.
var (
	keptFields = []string{"containers", "initContainers", "volumes", "securityContext", "hostUsers", "runtimeClassName", "shareProcessNamespace",
		"terminationGracePeriodSeconds", "imagePullSecrets", "dnsPolicy", "dnsConfig", "hostAliases", "hostname", "subdomain", "setHostnameAsFQDN",
		"enableServiceLinks", "restartPolicy", "os", "resources", "resourceClaims"}
	leftFields = []string{"nodeName", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulerName", "schedulingGates",
		"priority", "priorityClassName", "preemptionPolicy", "overhead", "activeDeadlineSeconds", "serviceAccount", "serviceAccountName",
		"automountServiceAccountToken", "ephemeralContainers"}
)

// copiedVolumes are the kinds of volumes that two pods may have at the same time without seeing each other.
var copiedVolumes = []string{"configMap", "secret", "emptyDir", "downwardAPI", "projected"}

const (
	// tokenVolume begins the name of the volume by which a pod gets the token of its service account.
	tokenVolume = "kube-api-access-"
	// networksAnnotation names networks of a pod besides the cluster's own (Multus).
	networksAnnotation = "k8s.v1.cni.cncf.io/networks"
)

// livePod is a pod as it runs.
type livePod struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

// podSpec is what a copy of a pod runs, with its ports by the claim template of the copy. The error says why there
// can be no copy.
func (k *Kubectl) podSpec(ctx context.Context, namespace, name, template, copied string) (map[string]any, error) {
	var p livePod
	if err := k.get(ctx, &p, in(namespace), "pods", name); err != nil {
		return nil, err
	}
	spec, err := p.copied(template, copied)
	if err != nil {
		return nil, fmt.Errorf("pod %s cannot be copied: %w", name, err)
	}
	return spec, nil
}

// copied is the spec of a copy.
func (p *livePod) copied(template, own string) (map[string]any, error) {
	if p.Metadata.Annotations[networksAnnotation] != "" {
		return nil, fmt.Errorf("it has other networks, by its annotation %s", networksAnnotation)
	}
	spec := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(p.Spec)) {
		switch {
		case slices.Contains(keptFields, name):
			spec[name] = p.Spec[name]
		case !slices.Contains(leftFields, name) && p.Spec[name] != false:
			return nil, fmt.Errorf("it has %s", name)
		}
	}
	if err := p.withoutToken(spec); err != nil {
		return nil, err
	}
	for _, c := range containersOf(spec) {
		for _, port := range list(c["ports"]) {
			if port["hostPort"] != nil {
				return nil, fmt.Errorf("its container %v has the port %v of its node", c["name"], port["hostPort"])
			}
		}
	}
	return spec, claimOf(spec, template, own)
}

// containersOf are all containers of a pod.
func containersOf(spec map[string]any) []map[string]any {
	return slices.Concat(list(spec["initContainers"]), list(spec["containers"]))
}

// withoutToken removes the token of the default service account, which by itself has no rights. Another
// account's token would let the copy act as the application.
func (p *livePod) withoutToken(spec map[string]any) error {
	volumes := []any{}
	for _, v := range list(spec["volumes"]) {
		name := fmt.Sprint(v["name"])
		account, _ := p.Spec["serviceAccountName"].(string)
		token := holdsToken(v)
		switch {
		case token && (account == "" || account == "default") && strings.HasPrefix(name, tokenVolume):
			continue
		case token:
			return fmt.Errorf("it has a token of the service account %s", account)
		}
		if kind := kindOf(v); !slices.Contains(copiedVolumes, kind) {
			return fmt.Errorf("its volume %s is a %s", name, kind)
		}
		volumes = append(volumes, v)
	}
	spec["volumes"] = volumes
	for _, c := range containersOf(spec) {
		mounts := []any{}
		for _, m := range list(c["volumeMounts"]) {
			if !strings.HasPrefix(fmt.Sprint(m["name"]), tokenVolume) {
				mounts = append(mounts, m)
			}
		}
		c["volumeMounts"] = mounts
	}
	spec["automountServiceAccountToken"] = false
	return nil
}

// holdsToken reports whether a volume has the token of a service account.
func holdsToken(volume map[string]any) bool {
	projected, _ := volume["projected"].(map[string]any)
	return slices.ContainsFunc(list(projected["sources"]), func(s map[string]any) bool { return s["serviceAccountToken"] != nil })
}

// kindOf is the kind of a volume, such as emptyDir.
func kindOf(volume map[string]any) string {
	for _, kind := range slices.Sorted(maps.Keys(volume)) {
		if kind != "name" {
			return kind
		}
	}
	return "volume of no kind"
}

// claimOf gives a pod the claim of the copy in place of that of the chain.
func claimOf(spec map[string]any, template, own string) error {
	found := false
	for _, c := range list(spec["resourceClaims"]) {
		if c["resourceClaimTemplateName"] != template {
			return fmt.Errorf("its claim %v is for another device", c["name"])
		}
		c["resourceClaimTemplateName"], found = own, true
	}
	if !found {
		return fmt.Errorf("it has no claim by the template %s", template)
	}
	return nil
}

// program is a copy of a pod of a function, on its node. It has none of the application's labels, so no Service
// and no controller takes it for one of the application's pods.
func (s *StandIn) program(name, function, node string, spec map[string]any) map[string]any {
	p := s.pod(name, function, node, "")
	bounds := p["spec"].(map[string]any)
	own := maps.Clone(spec)
	for _, field := range []string{"activeDeadlineSeconds", "tolerations", "affinity"} {
		own[field] = bounds[field]
	}
	p["spec"] = own
	return p
}
