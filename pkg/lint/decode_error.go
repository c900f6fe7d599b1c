// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// A fieldLocation is the location of a field that cannot be decoded.
type fieldLocation struct {
	path    *field.Path
	webhook string
}

// locateDecodeError returns the location of the field that cannot be decoded, because the decoder's error does not name
// the field.
func locateDecodeError(document map[string]any) fieldLocation {
	if !decodes[metav1.ObjectMeta](document["metadata"]) {
		return fieldLocation{path: field.NewPath("metadata")}
	}
	at := field.NewPath("webhooks")
	webhooks, _ := document["webhooks"].([]any)
	for i, w := range webhooks {
		webhook, ok := w.(map[string]any)
		if !ok {
			return fieldLocation{path: at.Index(i)}
		}
		for _, name := range slices.Sorted(maps.Keys(webhook)) {
			if !decodes[admissionregistrationv1.MutatingWebhook](map[string]any{name: webhook[name]}) {
				webhookName, _ := webhook["name"].(string)
				return fieldLocation{path: at.Index(i).Child(name), webhook: webhookName}
			}
		}
	}
	return fieldLocation{path: at}
}

func decodes[T any](value any) bool {
	encoded, err := json.Marshal(value)
	if err != nil {
		return false
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(encoded, new(T)) == nil
}

// decodeMessage returns the message of a decoder's error, without the names of Go types.
func decodeMessage(err error) string {
	message := strings.TrimPrefix(err.Error(), "json: ")
	parts := regexp.MustCompile(`^cannot unmarshal (\w+).* into Go (?:struct field (?:\S+\.)?(\w+)|value) of type (\S+)$`).FindStringSubmatch(message)
	if parts == nil {
		return message
	}
	kind := parts[3]
	switch {
	case strings.HasPrefix(kind, "[]"):
		kind = "list"
	case strings.HasPrefix(kind, "int"):
		kind = "number"
	case strings.HasPrefix(kind, "map[") || strings.Contains(kind, ".") && !strings.HasSuffix(kind, "Type") && !strings.HasSuffix(kind, "Class"):
		kind = "object"
	default:
		kind = "string"
	}
	got := map[string]string{"array": "list", "bool": "boolean"}[parts[1]]
	if got == "" {
		got = parts[1]
	}
	return strings.TrimSpace(parts[2] + " is " + article(got) + ", but must be " + article(kind))
}

func article(noun string) string {
	if strings.HasPrefix(noun, "o") {
		return "an " + noun
	}
	return "a " + noun
}
