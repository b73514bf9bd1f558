// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

// StandIn is a copy of a chain on the same nodes, with draygen in place of each function. It has links
// of its own, made like those of the chain.
type StandIn struct {
	Namespace string
	Chain     string        // the copy's name
	Of        string        // the chain's
	Pods      []string      // of its functions
	Image     string        // of draygen
	Objects   []Object      // to be applied
	Life      time.Duration // after which its pods end by themselves
	uid       string        // of the chain
}

const (
	// labelStandIn is on every object of a copy, with the name of the chain.
	labelStandIn = "drayage.io/stands-in-for"
	// annotationUntil is on the chain of a copy: when its pods have ended by themselves.
	annotationUntil = "drayage.io/stands-in-until"
	// standInSuffix ends the name of a copy. The alerts of kube/deploy/monitoring know it.
	standInSuffix = "-dray-verify"
	// draygenImage is the name of the image, and draygenPath its program.
	draygenImage, draygenPath = "draygen", "/draygen"
	draygenContainer          = "draygen"
	// scratchDir is the only directory to which a program can write.
	scratchDir = "/dev/shm"
)

// StandIn describes a copy of a chain whose pods run. Of the pods of a function with instances, it has one for each
// node that has some. image is draygen's; "": the one that was installed with dray-node. life is how long the copy
// may be needed. With paths, the functions between their ends run their own programs.
func (k *Kubectl) StandIn(ctx context.Context, c *Chain, image string, life time.Duration, paths *PathGroup) (*StandIn, error) {
	s := &StandIn{
		Namespace: c.Metadata.Namespace, Chain: standInName(c.Metadata.Name), Of: c.Metadata.Name, Life: life, uid: c.Metadata.UID,
	}
	own, err := manifest.Parse(c.Metadata.Name, c.Spec)
	if err != nil {
		return nil, err
	}
	if image == "" {
		if image, err = k.draygenImage(ctx); err != nil {
			return nil, err
		}
	}
	s.Image = image
	spec, err := copiedSpec(c, paths)
	if err != nil {
		return nil, err
	}
	err = s.add(map[string]any{"apiVersion": manifest.APIVersion, "kind": chain.Kind, "metadata": s.metadata(s.Chain), "spec": spec})
	for _, instances := range manifest.Declared(own) {
		for _, p := range placesOf(c, instances) {
			name := s.Chain + "-" + p.instance
			s.Pods = append(s.Pods, name)
			function := instances[0].Declared()
			switch {
			case err != nil:
			case paths.runs(function):
				err = s.add(s.program(name, function, p.node, paths.specs[function]))
			default:
				err = s.add(s.pod(name, function, p.node, image))
			}
		}
	}
	return s, err
}

// Abandoned reports whether an earlier run left a copy behind: it was killed, and the copy's time is
// over. It is an error if a copy exists that may be in use.
func (k *Kubectl) Abandoned(ctx context.Context, s *StandIn) (bool, error) {
	var found struct {
		Items []Chain `json:"items"`
	}
	if err := k.get(ctx, &found, append(in(s.Namespace), "--field-selector=metadata.name="+s.Chain), manifest.Resource); err != nil {
		return false, err
	}
	if len(found.Items) == 0 {
		return false, nil
	}
	m := found.Items[0].Metadata
	if m.Labels[labelStandIn] != s.Of {
		return false, fmt.Errorf("chain %s/%s has the name that a copy of chain %s would have, and is none", s.Namespace, s.Chain, s.Of)
	}
	if until, err := time.Parse(time.RFC3339, m.Annotations[annotationUntil]); err == nil && time.Now().After(until) {
		return true, nil
	}
	return false, &Error{
		Text: fmt.Sprintf("chain %s/%s exists: the chain is being measured, or such a run was killed", s.Namespace, s.Chain),
		Fix:  fmt.Sprintf("kubectl delete chains,pods --namespace=%s --selector=%s=%s", s.Namespace, labelStandIn, s.Of),
	}
}

// standInName is short enough for a chain, and differs between chains.
func standInName(of string) string {
	const longest = 32
	if len(of)+len(standInSuffix) <= longest {
		return of + standInSuffix
	}
	sum := fnv.New32a()
	sum.Write([]byte(of))
	return fmt.Sprintf("%s-%08x%s", strings.TrimRight(of[:longest-len(standInSuffix)-9], "-"), sum.Sum32(), standInSuffix)
}

// copiedSpec is the spec of a chain whose dpdk ports are native: they share memory in the same way. Those
// that are devices of DPDK itself stay. It asks for no placement, because the copy's pods are where the
// chain's are. With paths, their ends are native ports, also of interfaces: draygen then sends frames, as through
// functions it must, and without the capability that this takes at an interface. Functions that run their own
// programs have the ports of the chain.
func copiedSpec(c *Chain, paths *PathGroup) (map[string]any, error) {
	var spec map[string]any
	if err := json.Unmarshal(c.Spec, &spec); err != nil {
		return nil, fmt.Errorf("the chain's spec: %w", err)
	}
	manifest.Unplace(spec)
	devices := map[any]bool{} // "function.port"
	for _, l := range list(spec["links"]) {
		ends, _ := l["ends"].([]any)
		for _, e := range ends {
			devices[e] = c.hasOwnDevices(fmt.Sprint(l["name"]))
		}
	}
	for _, f := range list(spec["functions"]) {
		for _, p := range list(f["ports"]) {
			end := fmt.Sprintf("%v.%v", f["name"], p["name"])
			replaced := p["face"] == string(chain.FaceDPDK) && !devices[end] && !paths.runs(fmt.Sprint(f["name"]))
			if replaced || paths.endsAt(end) {
				p["face"] = string(chain.FaceNative)
			}
		}
	}
	return spec, nil
}

// hasOwnDevices reports whether the ends of a link of the spec, or of its first instance, are devices of
// DPDK itself. Instances are made in the same way.
func (c *Chain) hasOwnDevices(link string) bool {
	return fleet.HasOwnDevices(c.Link(link).Transport) || fleet.HasOwnDevices(c.Link(chain.Numbered(link, 0)).Transport)
}

// list is the objects in a JSON array.
func list(v any) (all []map[string]any) {
	items, _ := v.([]any)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

// place is where an instance of a function has its pod.
type place struct{ instance, node string }

// placesOf are the nodes with pods of a function, each with the first instance there.
func placesOf(c *Chain, instances []*chain.Function) (all []place) {
	for _, f := range instances {
		for _, l := range c.Status.Links {
			for _, e := range l.Ends {
				known := slices.ContainsFunc(all, func(p place) bool { return p.node == e.Node })
				if e.Function == f.Name && e.Node != "" && !known {
					all = append(all, place{f.Name, e.Node})
				}
			}
		}
	}
	return all
}

// metadata is of an object that goes with the chain, should nobody delete it.
func (s *StandIn) metadata(name string) map[string]any {
	return map[string]any{
		"namespace": s.Namespace, "name": name,
		"labels":          map[string]any{labelStandIn: s.Of},
		"annotations":     map[string]any{annotationUntil: time.Now().Add(s.Life).UTC().Format(time.RFC3339)},
		"ownerReferences": []any{map[string]any{"apiVersion": manifest.APIVersion, "kind": chain.Kind, "name": s.Of, "uid": s.uid}},
	}
}

// add adds an object.
func (s *StandIn) add(object map[string]any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var o Object
	err = json.Unmarshal(text, &o)
	s.Objects = append(s.Objects, o)
	return err
}

// pod is a pod in place of one of a function. Its program waits: a measurement starts others in its container.
func (s *StandIn) pod(name, function, node, image string) map[string]any {
	seconds := int(s.Life.Seconds())
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": s.metadata(name),
		"spec": map[string]any{
			"activeDeadlineSeconds": seconds, "terminationGracePeriodSeconds": 0, "restartPolicy": "Never",
			"automountServiceAccountToken": false, "enableServiceLinks": false,
			"securityContext": map[string]any{"runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1000, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
			// It goes where the chain's own pod is allowed to be.
			"tolerations": []any{map[string]any{"operator": "Exists"}},
			"affinity": map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
				"nodeSelectorTerms": []any{map[string]any{"matchFields": []any{
					map[string]any{"key": "metadata.name", "operator": "In", "values": []any{node}},
				}}},
			}}},
			"resourceClaims": []any{map[string]any{"name": "ports", "resourceClaimTemplateName": manifest.Template(s.Chain, function)}},
			"containers": []any{map[string]any{
				"name": draygenContainer, "image": image,
				"command":         []any{draygenPath, "sink", "--port", "udp:127.0.0.1:5010", "--duration", fmt.Sprintf("%ds", seconds)},
				"env":             []any{map[string]any{"name": "TMPDIR", "value": scratchDir}},
				"securityContext": map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}}},
				"resources": map[string]any{
					"claims": []any{map[string]any{"name": "ports"}}, "requests": map[string]any{"cpu": "100m", "memory": "64Mi"}, "limits": map[string]any{"memory": "256Mi"},
				},
			}},
		},
	}
}

// draygenImage is the image that belongs to the installed dray-node: of the same registry and release.
func (k *Kubectl) draygenImage(ctx context.Context) (string, error) {
	agents, err := k.Agents(ctx)
	if err != nil {
		return "", err
	}
	for _, a := range agents {
		path, tag, _ := strings.Cut(a.Image, "/"+manifest.NodeProgram+":")
		if tag != "" && !strings.Contains(tag, "@") {
			return path + "/" + draygenImage + ":" + tag, nil
		}
	}
	return "", &Error{Text: "no dray-node shows where the image of draygen is", Fix: "--image=REGISTRY/" + draygenImage + ":TAG"}
}

// hopeless are the reasons of a container that waits and will not start.
var hopeless = []string{"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerError", "RunContainerError"}

// Awaits is what the pods of a copy wait for; "": they run. It is an error if they wait for what will not come.
func (k *Kubectl) Awaits(ctx context.Context, s *StandIn) (string, error) {
	var list struct {
		Items []standInPod `json:"items"`
	}
	if err := k.get(ctx, &list, append(in(s.Namespace), "--selector="+labelStandIn+"="+s.Of), "pods"); err != nil {
		return "", err
	}
	for _, p := range list.Items {
		if wait, err := p.awaits(); wait != "" || err != nil {
			return wait, err
		}
	}
	if len(list.Items) < len(s.Pods) {
		return "", fmt.Errorf("%d of the %d pods of the copy are gone", len(s.Pods)-len(list.Items), len(s.Pods))
	}
	return "", nil
}

// standInPod is what says whether a pod runs.
type standInPod struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Phase      string      `json:"phase"`
		Message    string      `json:"message"`
		Conditions []Condition `json:"conditions"`
		Containers []struct {
			State struct {
				Waiting struct {
					Reason  string `json:"reason"`
					Message string `json:"message"`
				} `json:"waiting"`
				Terminated struct {
					Message string `json:"message"`
					Code    int    `json:"exitCode"`
				} `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// awaits is what a pod waits for; "": it runs.
func (p *standInPod) awaits() (string, error) {
	for _, c := range p.Status.Containers {
		if w := c.State.Waiting; slices.Contains(hopeless, w.Reason) {
			return "", &Error{Text: fmt.Sprintf("pod %s does not start: %s: %s", p.Metadata.Name, w.Reason, w.Message), Fix: "make the image of draygen available there, or name one: --image=REGISTRY/" + draygenImage + ":TAG"}
		}
	}
	switch {
	case p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded":
		return "", fmt.Errorf("pod %s has ended: %s", p.Metadata.Name, p.ending())
	case find(p.Status.Conditions, "PodScheduled").Status == isFalse:
		return fmt.Sprintf("pod %s has no node: %s", p.Metadata.Name, find(p.Status.Conditions, "PodScheduled").Message), nil
	case !find(p.Status.Conditions, "Ready").Holds():
		return "pod " + p.Metadata.Name + " is starting", nil
	}
	return "", nil
}

// ending is why a pod has ended.
func (p *standInPod) ending() string {
	for _, c := range p.Status.Containers {
		if t := c.State.Terminated; t.Message != "" || t.Code != 0 {
			return fmt.Sprintf("exit code %d: %s", t.Code, t.Message)
		}
	}
	return p.Status.Message
}

// exec are kubectl's arguments to run a program in a pod of a copy. Its input ends with kubectl's.
func (s *StandIn) exec(pod string, argv ...string) []string {
	return slices.Concat([]string{"exec", "--stdin", "--namespace=" + s.Namespace, pod, "--container=" + draygenContainer, "--"}, argv)
}
