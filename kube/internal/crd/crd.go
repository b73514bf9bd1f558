// SPDX-License-Identifier: Apache-2.0

// Package crd generates the CustomResourceDefinition of Chain from the decoders of chain
// files.
package crd

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

//go:generate go run ./crdgen ../../deploy/base/chain-crd.yaml

const head = `# SPDX-License-Identifier: Apache-2.0
# The custom resource Chain. Generated from the decoders of chain files: run
# ` + "`go generate ./internal/crd`" + ` in kube after a change of them.
`

// YAML is the manifest of the definition.
func YAML() ([]byte, error) {
	definition, err := Definition()
	if err != nil {
		return nil, err
	}
	// The API server fills in the definition's status.
	data, err := json.Marshal(map[string]any{
		"apiVersion": definition.APIVersion, "kind": definition.Kind,
		"metadata": map[string]any{"name": definition.Name}, "spec": definition.Spec,
	})
	if err != nil {
		return nil, err
	}
	text, err := layOut(data)
	return append([]byte(head), text...), err
}

// layOut is JSON as YAML for readers.
func layOut(data []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	plain(&root)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&root); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

// line is the longest text of a mapping that is written on one line.
const line = 80

// plain drops the quotes of JSON, and writes lists of scalars, and what is short, on one line.
// It returns the length of the text.
func plain(n *yaml.Node) int {
	n.Style = 0
	length, scalars, flows := len(n.Value), n.Kind != yaml.ScalarNode, n.Kind != yaml.ScalarNode
	for _, child := range n.Content {
		length += plain(child)
		scalars = scalars && child.Kind == yaml.ScalarNode
		flows = flows && (child.Kind == yaml.ScalarNode || child.Style == yaml.FlowStyle)
	}
	if scalars && n.Kind == yaml.SequenceNode || flows && length <= line {
		n.Style = yaml.FlowStyle
	}
	return length
}

// Definition is the CustomResourceDefinition of Chain.
func Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	specSchema, err := spec()
	if err != nil {
		return nil, err
	}
	root := object("A chain of functions whose pods Kubernetes places. The operator plans it, and reports whether each link meets its requirements.", map[string]apiextensionsv1.JSONSchemaProps{
		"apiVersion": {Type: "string"},
		"kind":       {Type: "string"},
		"metadata":   {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {Type: "string", MaxLength: ptr(int64(253))}}},
		"spec":       specSchema,
		"status":     status(),
	}, "spec")
	root.XValidations = apiextensionsv1.ValidationRules{nameOfChain}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "chains." + v1alpha1.GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: v1alpha1.GroupVersion.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "chains", Singular: "chain", Kind: "Chain", ListKind: "ChainList", ShortNames: []string{"dch"},
			},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: v1alpha1.GroupVersion.Version, Served: true, Storage: true,
				Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
				Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: columns(),
			}},
		},
	}, nil
}

// columns are what `kubectl get chains` prints.
func columns() []apiextensionsv1.CustomResourceColumnDefinition {
	column := func(name, description, path string) apiextensionsv1.CustomResourceColumnDefinition {
		return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Type: "string", Description: description, JSONPath: path}
	}
	transports := column("Transports", "The transport of each link.", ".status.links[*].transport")
	transports.Priority = 1
	reason := column("Message", "Why the chain is not planned, or on which nodes it can run.", `.status.conditions[?(@.type=="Planned")].message`)
	reason.Priority = 1
	return []apiextensionsv1.CustomResourceColumnDefinition{
		column("Plan", "Planned, or why not.", `.status.conditions[?(@.type=="Planned")].reason`),
		column("Links", "Links that have all their pods.", ".status.ready"),
		column("Met", "Whether every requirement is met: True, False or Unknown.", `.status.conditions[?(@.type=="Met")].status`),
		column("Verdict", "Requirements by verdict.", ".status.verdict"),
		{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		transports, reason,
	}
}
