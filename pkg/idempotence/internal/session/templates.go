// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// templates knows where custom resources have Pod specs. The API server accepts almost anything there, but Kubernetes
// would not create such a Pod, so an object with an unusable Pod spec says nothing about a webhook.
type templates map[string]map[string]bool // the problems that samples have themselves, by the place of the Pod spec

// LearnTemplates learns from the samples of a custom resource where its Pod specs are, and what they may lack. Later,
// Valid reports false for an object with other problems in a Pod spec.
func (s *Session) LearnTemplates(samples []map[string]any) {
	s.templates = templates{}
	for _, sample := range samples {
		podSpecs("", sample, func(at string, spec any) {
			problems, ok := problemsOf(spec)
			if !ok {
				return
			}
			if s.templates[at] == nil {
				s.templates[at] = map[string]bool{}
			}
			for _, p := range problems {
				s.templates[at][FieldOf(p.Error())] = true
			}
		})
	}
}

// usable reports whether Kubernetes could create Pods from the Pod specs in a document.
func (t templates) usable(doc any) bool {
	ok := true
	if len(t) == 0 {
		return ok
	}
	podSpecs("", doc, func(at string, spec any) {
		tolerated, known := t[at]
		if !known || !ok {
			return
		}
		problems, decoded := problemsOf(spec)
		ok = decoded
		for _, p := range problems {
			ok = ok && tolerated[FieldOf(p.Error())]
		}
	})
	return ok
}

// podSpecs calls visit for each object in a document that has containers. The place at does not tell the elements of a
// list apart.
func podSpecs(at string, value any, visit func(at string, spec any)) {
	switch value := value.(type) {
	case map[string]any:
		if containers, _ := value["containers"].([]any); len(containers) > 0 {
			visit(at, value)
			return
		}
		for name, inner := range value {
			podSpecs(at+"."+name, inner, visit)
		}
	case []any:
		for _, element := range value {
			podSpecs(at+"[]", element, visit)
		}
	}
}

// problemsOf validates a Pod spec. It returns false if it cannot be decoded.
func problemsOf(spec any) (field.ErrorList, bool) {
	t := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	if err := decode.Unmarshal(tree.Encode(spec), &t.Template.Spec); err != nil {
		return nil, false
	}
	k8svalidation.Default(t)
	var problems field.ErrorList
	for _, p := range k8svalidation.Validate(t) {
		if strings.HasPrefix(p.Field, "template.spec") {
			problems = append(problems, p)
		}
	}
	return problems, true
}
