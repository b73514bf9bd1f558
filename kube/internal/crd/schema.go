// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

// form is the part of JSON Schema that the schema of chain files uses.
type form struct {
	Ref              string          `json:"$ref"`
	Description      string          `json:"description"`
	Type             kind            `json:"type"`
	Default          any             `json:"default"`
	Enum             []string        `json:"enum"`
	Pattern          string          `json:"pattern"`
	MaxLength        *int64          `json:"maxLength"`
	MinLength        *int64          `json:"minLength"`
	Minimum          *float64        `json:"minimum"`
	Maximum          *float64        `json:"maximum"`
	ExclusiveMinimum *float64        `json:"exclusiveMinimum"`
	ExclusiveMaximum *float64        `json:"exclusiveMaximum"`
	MinItems         *int64          `json:"minItems"`
	MaxItems         *int64          `json:"maxItems"`
	Items            *form           `json:"items"`
	OneOf            []form          `json:"oneOf"`
	Not              *form           `json:"not"`
	Required         []string        `json:"required"`
	Properties       map[string]form `json:"properties"`
	Definitions      map[string]form `json:"$defs"`
}

// kind is the type of a value; empty if there are several, as for the words of a command.
type kind string

func (k *kind) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return nil
	}
	return json.Unmarshal(data, (*string)(k))
}

// converter turns the schema of chain files into a structural schema of the API server:
// without references, defaults (the operator's decoders apply them) and conditions
// between fields (chain.Parse judges them, or a rule in CEL).
type converter struct{ definitions map[string]form }

// spec is the schema of an object's spec.
func spec() (apiextensionsv1.JSONSchemaProps, error) {
	var root form
	if err := json.Unmarshal(chain.Schema(), &root); err != nil {
		return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("the schema of chain files: %w", err)
	}
	c := converter{definitions: root.Definitions}
	s := c.convert("spec", root)
	placement, err := c.placement()
	s.Properties["placement"] = placement
	return s, err
}

// placement is the schema of what an object has and no chain file.
func (c converter) placement() (apiextensionsv1.JSONSchemaProps, error) {
	text, err := json.Marshal(manifest.PlacementSchema())
	if err != nil {
		return apiextensionsv1.JSONSchemaProps{}, err
	}
	var f form
	if err := json.Unmarshal(text, &f); err != nil {
		return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("the schema of a placement: %w", err)
	}
	return c.convert("spec.placement", f), nil
}

// convert is the structural schema of a value at path; items of a list have its path.
func (c converter) convert(path string, f form) apiextensionsv1.JSONSchemaProps {
	f = c.resolve(f)
	s := apiextensionsv1.JSONSchemaProps{
		Description: described(f), Type: string(f.Type), Pattern: f.Pattern,
		MinLength: f.MinLength, MaxLength: f.MaxLength, Minimum: f.Minimum, Maximum: f.Maximum, MinItems: f.MinItems, MaxItems: f.MaxItems,
	}
	if f.ExclusiveMinimum != nil {
		s.Minimum, s.ExclusiveMinimum = f.ExclusiveMinimum, true
	}
	if f.ExclusiveMaximum != nil {
		s.Maximum, s.ExclusiveMaximum = f.ExclusiveMaximum, true
	}
	if len(f.Enum) > 0 {
		s.Type, s.Enum = "string", words(f.Enum)
	}
	if f.Type == intOrString {
		s.Type, s.XIntOrString = "", true
	}
	if f.Not != nil && len(f.Not.Enum) > 0 {
		s.XValidations = append(s.XValidations, reserved(f.Not.Enum))
	}
	if f.Items != nil {
		item := c.convert(path, *f.Items)
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
	}
	c.properties(path, f, &s)
	adjust(path, &s)
	return s
}

// aboveQueues are the fields of a qdisc that one below another has not: it only queues.
var aboveQueues = []string{"rate", "ceil", "burst", "latency", "child", "classes", "at"}

// without reports whether an object has no such field.
func without(path, name string) bool {
	return strings.HasSuffix(path, ".child") && slices.Contains(aboveQueues, name)
}

// properties converts the fields that an object has.
func (c converter) properties(path string, f form, s *apiextensionsv1.JSONSchemaProps) {
	allowed, limited := fields[path]
	for name, property := range f.Properties {
		if limited && !slices.Contains(allowed, name) || without(path, name) {
			continue
		}
		if s.Properties == nil {
			s.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		s.Properties[name] = c.convert(path+"."+name, property)
		if slices.Contains(f.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
	slices.Sort(s.Required)
}

// intOrString marks a form that is a number or text.
const intOrString = "int-or-string"

// resolve replaces a reference, and takes the alternative that an object has.
func (c converter) resolve(f form) form {
	description, def := f.Description, f.Default
	if name, ok := strings.CutPrefix(f.Ref, "#/$defs/"); ok {
		f = c.resolve(c.definitions[name])
	}
	if len(f.OneOf) > 0 {
		alternatives := f.OneOf
		f = c.resolve(alternatives[0])
		if f.Type == "integer" {
			f.Type, f.Pattern, f.MaxLength = intOrString, alternatives[1].Pattern, alternatives[1].MaxLength
		}
	}
	if units := unitsOnly(f.Description); description != "" && !strings.HasSuffix(description, units) {
		f.Description = description + " " + units
	} else if description != "" {
		f.Description = description
	}
	if def != nil {
		f.Default = def
	}
	return f
}

// unitsOnly is what a definition says of how a value is written.
func unitsOnly(description string) string {
	if strings.HasPrefix(description, "A number with") || strings.HasPrefix(description, "A number of bytes, alone") {
		return description
	}
	return ""
}

// described is the description with the default, which the decoders apply.
func described(f form) string {
	if f.Default == nil || strings.Contains(f.Description, "Default:") {
		return f.Description
	}
	return fmt.Sprintf("%s Default: %v.", f.Description, f.Default)
}

// words are the values of an enumeration.
func words(values []string) []apiextensionsv1.JSON {
	var all []apiextensionsv1.JSON
	for _, v := range values {
		all = append(all, apiextensionsv1.JSON{Raw: []byte(fmt.Sprintf("%q", v))})
	}
	return all
}
