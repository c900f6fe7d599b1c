// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Handled describes the objects that a handler takes.
type Handled struct {
	Type     string                    // the Go type, for messages
	Kinds    []metav1.GroupVersionKind // any kind if empty
	Resource string                    // empty if not known
}

// HandledBy returns what a handler for T takes. The resource is known for built-in types only.
func HandledBy[T any]() Handled {
	t := reflect.TypeFor[T]()
	h := Handled{Type: t.String(), Kinds: KindsOf[T]()}
	if len(h.Kinds) > 0 && strings.HasPrefix(t.PkgPath(), "k8s.io/api/") {
		kind := h.Kinds[0]
		resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Version: kind.Version, Kind: kind.Kind})
		h.Resource = resource.Resource
	}
	return h
}

// Takes reports whether a handler takes objects of a kind.
func (h Handled) Takes(kind metav1.GroupVersionKind) bool {
	return slices.ContainsFunc(h.Kinds, func(k metav1.GroupVersionKind) bool { return matchKind(k, kind) })
}

// SharedKind returns a kind that two handlers take.
func (h Handled) SharedKind(other Handled) (shared metav1.GroupVersionKind, ok bool) {
	for _, a := range h.Kinds {
		for _, b := range other.Kinds {
			if a.Kind == b.Kind && overlap(a.Group, b.Group) && overlap(a.Version, b.Version) {
				return a, true
			}
		}
	}
	return shared, false
}

func overlap(a, b string) bool { return a == b || a == "*" || b == "*" }

// CheckHandlers returns errors for rules and handlers that do not fit each other: see CheckResources. A handler
// of a built-in kind that no rule covers is an error, too, since it would never be called.
func (r *Registration) CheckHandlers(all []Handled) error {
	var errs field.ErrorList
	for _, h := range all {
		if h.Resource != "" && !servedAsSubresource[h.Kinds[0].Kind] && !slices.ContainsFunc(r.Rules, h.isCoveredBy) {
			errs = append(errs, field.Invalid(r.FieldPath().Child("rules"), resourcesOf(r.Rules),
				fmt.Sprintf("no rule covers %q: the handler for a %s would never be called", h.Resource, h.Type)))
		}
	}
	if err := JoinFields(errs); err != nil {
		return err
	}
	return r.CheckResources(all)
}

// servedAsSubresource are the kinds in requests for subresources of other kinds.
var servedAsSubresource = map[string]bool{
	"Binding": true, "Eviction": true, "NodeProxyOptions": true, "PodAttachOptions": true, "PodExecOptions": true,
	"PodPortForwardOptions": true, "PodProxyOptions": true, "Scale": true, "ServiceProxyOptions": true, "TokenRequest": true,
}

func (h Handled) isCoveredBy(rule admissionregistrationv1.RuleWithOperations) bool {
	version := h.Kinds[0].Version
	return (slices.Contains(rule.APIVersions, "*") || version == "*" || slices.Contains(rule.APIVersions, version)) &&
		slices.ContainsFunc(rule.Resources, func(name string) bool {
			base, _, _ := strings.Cut(name, "/")
			return base == "*" || base == h.Resource
		})
}

func resourcesOf(rules []admissionregistrationv1.RuleWithOperations) (all []string) {
	for _, rule := range rules {
		all = append(all, rule.Resources...)
	}
	return all
}

// CheckResources returns errors for rules that cover a resource without a handler, since every call for such a
// resource would fail. It returns none if the resource of a handler is not known.
func (r *Registration) CheckResources(all []Handled) error {
	var types, resources []string
	for _, h := range all {
		if h.Resource == "" {
			return nil
		}
		types, resources = append(types, h.Type), append(resources, fmt.Sprintf("%q", h.Resource))
	}
	at := r.FieldPath().Child("rules")
	var errs field.ErrorList
	for i, rule := range r.Rules {
		for j, name := range rule.Resources {
			known := func(h Handled) bool { return h.Resource == name }
			if !resourceName.MatchString(name) || strings.ContainsAny(name, "*/") || slices.ContainsFunc(all, known) {
				continue
			}
			text := fmt.Sprintf("the handler takes a %s, whose resource is %s: every call for another resource would fail", types[0], resources[0])
			if len(all) > 1 {
				text = fmt.Sprintf("the handlers take %s: every call for another resource would fail", strings.Join(resources, ", "))
			}
			errs = append(errs, field.Invalid(at.Index(i).Child("resources").Index(j), name, text))
		}
	}
	return JoinFields(errs)
}
