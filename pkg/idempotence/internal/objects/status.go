// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// StatusExample returns an example of a status, from the schema of the CustomResourceDefinition, or nil without a schema.
func (k *Kind) StatusExample() any {
	if k.Custom == nil {
		return nil
	}
	versions := k.Custom.resource.Definition.Spec.Versions
	i := slices.IndexFunc(versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == k.Version })
	if i < 0 || versions[i].Schema == nil || versions[i].Schema.OpenAPIV3Schema == nil {
		return nil
	}
	status, ok := versions[i].Schema.OpenAPIV3Schema.Properties["status"]
	if !ok {
		return nil
	}
	return exampleOf(&status)
}

// exampleOf returns a value that a schema allows, or nil. It leaves out lists and fields with a format or pattern.
func exampleOf(s *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case len(s.Enum) > 0:
		var value any
		if json.Unmarshal(s.Enum[len(s.Enum)-1].Raw, &value) != nil {
			return nil
		}
		return value
	case s.Format != "" && s.Type == "string" || s.Pattern != "" || s.MinLength != nil:
		return nil
	case s.Type == "string":
		return "1"
	case s.Type == "integer" || s.Type == "number":
		return int64(1)
	case s.Type == "boolean":
		return true
	case s.Type != "object":
		return nil
	}
	fields := map[string]any{}
	for name := range s.Properties {
		property := s.Properties[name]
		if value := exampleOf(&property); value != nil {
			fields[name] = value
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}
