// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// templates are the claim templates of a planned chain, one for each function of its spec.
func templates(c *v1alpha1.Chain, d decision) ([]*resourcev1.ResourceClaimTemplate, error) {
	if d.plan == nil || d.withheld != "" {
		return nil, nil
	}
	var all []*resourcev1.ResourceClaimTemplate
	for _, instances := range manifest.Declared(d.chain) {
		t, err := template(c, d, instances)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// template has a request for each port, and says for each instance which port that is.
func template(c *v1alpha1.Chain, d decision, instances []*chain.Function) (*resourcev1.ResourceClaimTemplate, error) {
	name := instances[0].Declared()
	labels := map[string]string{v1alpha1.LabelChain: c.Name, v1alpha1.LabelFunction: name}
	t := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{
		Name: manifest.Template(c.Name, name), Namespace: c.Namespace, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, v1alpha1.GroupVersion.WithKind("Chain"))},
	}}
	t.Spec.Labels = labels
	devices := &t.Spec.Spec.Devices
	for i, f := range instances {
		for _, p := range f.Ports {
			link := linkOf(d.plan, f.Name, p.Name)
			if link == nil {
				continue // the schema refuses a port without a link
			}
			config, err := configOf(c, f, p, *link, d.across.Link(link.Name))
			if err != nil {
				return nil, err
			}
			if i == 0 {
				devices.Requests = append(devices.Requests, requestOf(p, d.nodesOf(name), capacities(d.chain, link)))
			}
			devices.Config = append(devices.Config, config)
		}
	}
	return t, nil
}

// linkOf is the planned link of a port, or nil.
func linkOf(p *plan.Plan, function, port string) *plan.Link {
	for i, l := range p.Links {
		for _, e := range l.Ends {
			if e.Function == function && e.Port == port {
				return &p.Links[i]
			}
		}
	}
	return nil
}

// capacities are what a port of the link takes of its node: one port, and the rates that the
// link must carry. Where the other port will be is not known yet, so they count as if on the
// same node. A chain that is to be measured in any case asks for no rates.
func capacities(c *chain.Chain, l *plan.Link) map[resourcev1.QualifiedName]resource.Quantity {
	all := map[resourcev1.QualifiedName]resource.Quantity{v1alpha1.CapacityPorts: *resource.NewQuantity(1, resource.DecimalSI)}
	if c.Policy.OnInfeasible == chain.Warn {
		return all
	}
	demand := l.Demand()
	for name, n := range map[resourcev1.QualifiedName]uint64{
		v1alpha1.CapacityBitrate(l.Transport):    uint64(demand.Bitrate),
		v1alpha1.CapacityPacketRate(l.Transport): uint64(demand.PacketRate),
	} {
		if n > 0 {
			all[name] = *resource.NewQuantity(int64(min(n, math.MaxInt64)), resource.DecimalSI)
		}
	}
	return all
}

// requestOf asks for a port of a node. It states the defaults of the API, so that it
// can be compared with what the API server returns.
func requestOf(p chain.Port, nodes []string, takes map[resourcev1.QualifiedName]resource.Quantity) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: p.Name, Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: v1alpha1.Driver,
		AllocationMode:  resourcev1.DeviceAllocationModeExactCount,
		Count:           1,
		Selectors:       []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: selector(nodes)}}},
		Capacity:        &resourcev1.CapacityRequirements{Requests: takes},
	}}
}

// selector matches devices of the nodes: as many as the API permits in an expression.
func selector(nodes []string) string {
	var quoted []string
	free := resourcev1.CELSelectorExpressionMaxLength - 128
	for _, n := range nodes {
		text := fmt.Sprintf("%q", n)
		if free -= len(text) + 2; free < 0 {
			break
		}
		quoted = append(quoted, text)
	}
	return fmt.Sprintf("device.attributes[%q].%s in [%s]", v1alpha1.Driver, v1alpha1.AttributeNode, strings.Join(quoted, ", "))
}

// configOf tells the node which port the request stands for, if the pod is f.
func configOf(c *v1alpha1.Chain, f *chain.Function, p chain.Port, l plan.Link, across *plan.Link) (resourcev1.DeviceClaimConfiguration, error) {
	port := v1alpha1.NewPortParameters(c.Name, f.Name, p.Name, fleet.Bare(l), across)
	port.Of = f.Of
	parameters, err := json.Marshal(port)
	if err == nil && len(parameters) > resourcev1.OpaqueParametersMaxLength {
		err = fmt.Errorf("the link %s is too large for a claim: %d bytes, and %d are permitted; give it fewer traffic classes",
			l.Name, len(parameters), resourcev1.OpaqueParametersMaxLength)
	}
	config := resourcev1.DeviceClaimConfiguration{Requests: []string{p.Name}}
	config.Opaque = &resourcev1.OpaqueDeviceConfiguration{Driver: v1alpha1.Driver, Parameters: runtime.RawExtension{Raw: parameters}}
	return config, err
}
