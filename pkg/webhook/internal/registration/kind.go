// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/internal/rulematch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

var apiVersion = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// KindsOf returns the kinds that T can hold, or nil for any kind. For API types, which are
// runtime.Objects, the Go name is the kind, as in runtime.Scheme, and the last element of the
// package path is the version. Projections and the generic types of apimachinery hold any kind. See
// also CheckKindKnown.
func KindsOf[T any]() []metav1.GroupVersionKind {
	t := reflect.TypeFor[T]()
	if _, isObject := any(new(T)).(runtime.Object); !isObject || !hasTypeMeta(t) || strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/") {
		return nil
	}
	kind := metav1.GroupVersionKind{Group: "*", Version: "*", Kind: t.Name()}
	if v := path.Base(t.PkgPath()); apiVersion.MatchString(v) {
		kind.Version = v
	}
	return []metav1.GroupVersionKind{kind}
}

// hasTypeMeta reports whether t has a TypeMeta itself. A struct that embeds an API type has the
// methods of that type, but is not an API type.
func hasTypeMeta(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	field, found := t.FieldByName("TypeMeta")
	return found && len(field.Index) == 1
}

// CheckRules returns errors for rules that cover a resource other than that of the built-in type T, since every call
// for such a resource would fail. It does not check other types, since their resource names are not known.
func CheckRules[T any](reg *Registration) error {
	return reg.CheckResources([]Handled{HandledBy[T]()})
}

// CheckHandled returns an error for a request that these kinds or the rules do not cover. Such a request means that the
// webhook configuration in the cluster has other rules or a wrong path. Without rules, CheckHandled checks only the
// kinds.
func (r *Registration) CheckHandled(kinds []metav1.GroupVersionKind, req *review.Request) error {
	ofKind := func(k metav1.GroupVersionKind) bool { return matchKind(k, req.Kind) }
	byRule := func(rule admissionregistrationv1.RuleWithOperations) bool { return matchRule(rule, req) }
	switch {
	case len(kinds) > 0 && !slices.ContainsFunc(kinds, ofKind):
		return reply.BadRequest("the hook handles %s, not kind %s", joinKinds(kinds), KindText(req.Kind))
	case len(r.Rules) > 0 && !slices.ContainsFunc(r.Rules, byRule):
		return reply.BadRequest("no rule of the hook covers %s of %s (kind %s); its rules are %s",
			req.Operation, resourceText(req), KindText(req.Kind), rulesText(r.Rules))
	case req.Object == nil && (req.Operation == admissionv1.Create || req.Operation == admissionv1.Update):
		return reply.BadRequest("the request is a %s without an object", req.Operation)
	}
	return nil
}

func matchKind(want, got metav1.GroupVersionKind) bool {
	return (want.Group == "*" || want.Group == got.Group) &&
		(want.Version == "*" || want.Version == got.Version) && want.Kind == got.Kind
}

// matchRule does what the API server's rules.Matcher does, apart from the scope: a request does not
// say for certain whether its resource is namespaced.
func matchRule(rule admissionregistrationv1.RuleWithOperations, r *review.Request) bool {
	return rulematch.MatchesAnyScope(rule, rulematch.Request{
		Operation: admissionregistrationv1.OperationType(r.Operation),
		Group:     r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource, SubResource: r.SubResource,
	})
}

// KindText returns a kind as messages show it, such as "Pod (v1)".
func KindText(k metav1.GroupVersionKind) string {
	text := k.Kind
	if k.Kind == "" {
		text = `""`
	}
	switch {
	case k.Version == "*", k.Version == "":
		return text
	case k.Group == "*", k.Group == "":
		return fmt.Sprintf("%s (%s)", text, k.Version)
	}
	return fmt.Sprintf("%s (%s/%s)", text, k.Group, k.Version)
}

func joinKinds(kinds []metav1.GroupVersionKind) string {
	texts := make([]string, len(kinds))
	for i, k := range kinds {
		texts[i] = KindText(k)
	}
	return "kind " + strings.Join(texts, " or ")
}

func resourceText(r *review.Request) string {
	text := r.Resource.Resource
	if r.SubResource != "" {
		text += "/" + r.SubResource
	}
	if r.Resource.Group != "" {
		return fmt.Sprintf("%s.%s (%s)", text, r.Resource.Group, r.Resource.Version)
	}
	return fmt.Sprintf("%s (%s)", text, r.Resource.Version)
}

func rulesText(rules []admissionregistrationv1.RuleWithOperations) string {
	texts := make([]string, len(rules))
	for i, r := range rules {
		texts[i] = fmt.Sprintf("%v of %q in groups %q versions %q", r.Operations, r.Resources, r.APIGroups, r.APIVersions)
	}
	return strings.Join(texts, "; ")
}
