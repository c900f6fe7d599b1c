// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// builtInStatus has the status of objects of some built-in kinds after controllers have set it.
var builtInStatus = map[string]any{
	"Deployment":              workloadStatus,
	"StatefulSet":             workloadStatus,
	"ReplicaSet":              workloadStatus,
	"DaemonSet":               map[string]any{"observedGeneration": int64(1), "currentNumberScheduled": int64(1), "desiredNumberScheduled": int64(1), "numberReady": int64(1), "numberMisscheduled": int64(0)},
	"Job":                     map[string]any{"succeeded": int64(1), "active": int64(1)},
	"Service":                 addresses,
	"Ingress":                 map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}}},
	"PersistentVolumeClaim":   map[string]any{"phase": "Bound"},
	"PersistentVolume":        map[string]any{"phase": "Bound"},
	"Namespace":               map[string]any{"phase": "Active"},
	"PodDisruptionBudget":     map[string]any{"currentHealthy": int64(1), "desiredHealthy": int64(1), "disruptionsAllowed": int64(1), "expectedPods": int64(1)},
	"HorizontalPodAutoscaler": map[string]any{"currentReplicas": int64(1), "desiredReplicas": int64(1)},
}

var (
	workloadStatus = map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1)}
	addresses      = map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1", "ipMode": "VIP"}}}}
)

// StatusExample returns an example of a status that a request for the object itself cannot change. It returns nil if no
// example is known, and for custom resources without the status subresource, because their status is an ordinary field.
func (k *Kind) StatusExample() any {
	if k.GoType != nil {
		return builtInStatus[k.Kind]
	}
	if !k.DropsStatus() {
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

// exampleOf returns a value that a schema allows, with all members of objects and one element in each list. It returns
// nil if it finds none.
func exampleOf(s *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case len(s.Enum) > 0:
		return exampleOfEnum(s.Enum)
	case s.Type == "string":
		return exampleOfText(s)
	case s.Type == "integer" || s.Type == "number":
		return int64(1)
	case s.Type == "boolean":
		return true
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		if element := exampleOf(s.Items.Schema); element != nil {
			return []any{element}
		}
		return nil
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

// exampleOfEnum returns "True" if it is one of the values, as in the status of a condition. Otherwise it returns the last
// value, because a list of phases often ends with one that a controller sets. It returns nil if a value cannot be decoded.
func exampleOfEnum(values []apiextensionsv1.JSON) (example any) {
	for _, raw := range values {
		var value any
		if json.Unmarshal(raw.Raw, &value) != nil {
			return nil
		}
		if example = value; value == "True" {
			break
		}
	}
	return example
}

// textExamples are texts of the forms that the fields of a status usually have.
var textExamples = []string{"Ready", "ready", "1", "2001-02-03T04:05:06Z", "192.0.2.1", "https://192.0.2.1", "10s"}

// formatExamples are texts in the formats of a schema.
var formatExamples = map[string]string{"date-time": "2001-02-03T04:05:06Z", "date": "2001-02-03", "duration": "10s", "ipv4": "192.0.2.1", "uri": "https://192.0.2.1"}

func exampleOfText(s *apiextensionsv1.JSONSchemaProps) any {
	if s.Format != "" {
		if text, ok := formatExamples[s.Format]; ok {
			return text
		}
		return nil
	}
	pattern, err := regexp.Compile(s.Pattern)
	if err != nil {
		return nil
	}
	for _, text := range textExamples {
		if pattern.MatchString(text) && (s.MinLength == nil || int64(len(text)) >= *s.MinLength) && (s.MaxLength == nil || int64(len(text)) <= *s.MaxLength) {
			return text
		}
	}
	return nil
}
