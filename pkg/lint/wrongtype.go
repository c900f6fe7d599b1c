// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"regexp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// A place is where a value is that cannot be decoded.
type place struct {
	path    *field.Path
	webhook string
}

// wrongType finds the field of a document that cannot be decoded, which the decoder does not tell.
func wrongType(document map[string]any) place {
	if !decodes[metav1.ObjectMeta](document["metadata"]) {
		return place{path: field.NewPath("metadata")}
	}
	at := field.NewPath("webhooks")
	webhooks, _ := document["webhooks"].([]any)
	for i, w := range webhooks {
		webhook, ok := w.(map[string]any)
		if !ok {
			return place{path: at.Index(i)}
		}
		for _, name := range sorted(keys(webhook)) {
			if !decodes[admissionregistrationv1.MutatingWebhook](map[string]any{name: webhook[name]}) {
				called, _ := webhook["name"].(string)
				return place{path: at.Index(i).Child(name), webhook: called}
			}
		}
	}
	return place{path: at}
}

func decodes[T any](value any) bool {
	encoded, err := json.Marshal(value)
	if err != nil {
		return false
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(encoded, new(T)) == nil
}

// told says what the decoder says without the names of Go types.
func told(err error) string {
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
	return strings.TrimSpace(parts[2] + " is " + article(got) + ", and has to be " + article(kind))
}

func article(noun string) string {
	if strings.HasPrefix(noun, "o") {
		return "an " + noun
	}
	return "a " + noun
}
