// SPDX-License-Identifier: Apache-2.0

package crd

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// status is the schema of v1alpha1.ChainStatus.
func status() apiextensionsv1.JSONSchemaProps {
	conditions := list(condition())
	conditions.XListType, conditions.XListMapKeys = ptr("map"), []string{"type"}
	end := object("", texted("function", "port", "pod", "node", "transport"), "function", "port")
	tunnel := object("", texted("address"), "address", "vni")
	tunnel.Properties["vni"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}
	end.Properties["tunnel"] = tunnel
	link := object("", texted("name", "transport", "local"), "name")
	link.Properties["ends"] = list(end)
	limits := object("", texted("text"), "generation", "text")
	limits.Properties["generation"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	link.Properties["limits"] = limits
	link.Properties["requirements"] = conditions
	link.Properties["idle"] = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	path := object("", texted("name"), "name")
	path.Properties["links"] = list(apiextensionsv1.JSONSchemaProps{Type: "string"})
	path.Properties["requirements"] = conditions
	all := object("What the operator knows of the chain.", map[string]apiextensionsv1.JSONSchemaProps{
		"observedGeneration": {Type: "integer", Format: "int64"},
		"conditions":         conditions,
		"links":              list(link),
		"paths":              list(path),
		"instances":          list(object("", texted("function", "claim", "uid"), "function", "claim", "uid")),
		"placement":          list(object("", texted("function", "node", "reason"), "function", "node", "reason")),
		"ready":              {Type: "string"},
		"verdict":            {Type: "string"},
	})
	return all
}

// condition is the schema of metav1.Condition.
func condition() apiextensionsv1.JSONSchemaProps {
	c := object("", texted("type", "status", "reason", "message"), "lastTransitionTime", "message", "reason", "status", "type")
	c.Properties["status"] = apiextensionsv1.JSONSchemaProps{Type: "string", Enum: words([]string{"True", "False", "Unknown"})}
	c.Properties["lastTransitionTime"] = apiextensionsv1.JSONSchemaProps{Type: "string", Format: "date-time"}
	c.Properties["observedGeneration"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	return c
}

func object(description string, properties map[string]apiextensionsv1.JSONSchemaProps, required ...string) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Description: description, Properties: properties, Required: required}
}

func list(item apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
}

// texted are fields that are text.
func texted(names ...string) map[string]apiextensionsv1.JSONSchemaProps {
	all := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, name := range names {
		all[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	return all
}

func ptr[T any](v T) *T { return &v }
