// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"path"
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

// HandledBy describes the objects that a handler for T takes. Resource and group are known for built-in types only.
func HandledBy[T any]() Handled {
	t := reflect.TypeFor[T]()
	h := Handled{Type: t.String(), Kinds: KindsOf[T]()}
	if builtIn, found := strings.CutPrefix(t.PkgPath(), "k8s.io/api/"); found && len(h.Kinds) > 0 {
		kind := &h.Kinds[0]
		resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Version: kind.Version, Kind: kind.Kind})
		h.Resource = resource.Resource
		kind.Group = groupOf(path.Dir(builtIn))
	}
	return h
}

// groupOf returns the API group of a folder of module k8s.io/api.
func groupOf(folder string) string {
	switch folder {
	case "core":
		return ""
	case "apps", "autoscaling", "batch", "extensions", "policy":
		return folder
	case "rbac":
		return "rbac.authorization.k8s.io"
	case "flowcontrol":
		return "flowcontrol.apiserver.k8s.io"
	case "apiserverinternal":
		return "internal.apiserver.k8s.io"
	}
	return folder + ".k8s.io"
}

// Takes reports whether a handler takes objects of a kind.
func (h Handled) Takes(kind metav1.GroupVersionKind) bool {
	return slices.ContainsFunc(h.Kinds, func(k metav1.GroupVersionKind) bool { return matchKind(k, kind) })
}

// SharedKind returns a kind that both handlers take, or false if there is none.
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

// CheckHandlers returns errors for rules and handlers that do not fit each other: see CheckResources. A handler of a
// built-in kind that no rule covers is an error, too, since it would never be called. If the registration has no rules,
// CheckHandlers returns nil.
func (r *Registration) CheckHandlers(all []Handled) error {
	var errs field.ErrorList
	for _, h := range all {
		if len(r.Rules) > 0 && h.Resource != "" && !servedAsSubresource[h.Kinds[0].Kind] && !slices.ContainsFunc(r.Rules, h.isCoveredBy) {
			errs = append(errs, field.Invalid(r.FieldPath().Child("rules"), resourcesOf(r.Rules),
				fmt.Sprintf("no rule covers %q: the handler for a %s would never be called", h.Resource, h.Type)))
		}
	}
	return errors.Join(JoinFields(errs), r.CheckResources(all))
}

// kindsOfSubresources maps a subresource to the kind of its requests, if that differs from the kind of the parent
// resource.
var kindsOfSubresources = map[string]string{
	"attach": "PodAttachOptions", "binding": "Binding", "eviction": "Eviction", "exec": "PodExecOptions",
	"portforward": "PodPortForwardOptions", "scale": "Scale", "token": "TokenRequest",
}

// servedAsSubresource holds the kinds whose objects the API server sends for a subresource of another kind, such as
// Eviction for pods/eviction.
var servedAsSubresource = map[string]bool{
	"Binding": true, "Eviction": true, "NodeProxyOptions": true, "PodAttachOptions": true, "PodExecOptions": true,
	"PodPortForwardOptions": true, "PodProxyOptions": true, "Scale": true, "ServiceProxyOptions": true, "TokenRequest": true,
}

// isCoveredBy reports whether a rule covers the handler's resource, or a subresource of the same kind.
func (h Handled) isCoveredBy(rule admissionregistrationv1.RuleWithOperations) bool {
	kind := h.Kinds[0]
	return includes(rule.APIVersions, kind.Version) && includes(rule.APIGroups, kind.Group) &&
		slices.ContainsFunc(rule.Resources, func(name string) bool {
			base, sub, _ := strings.Cut(name, "/")
			return (base == "*" || base == h.Resource) && kindsOfSubresources[sub] == ""
		})
}

// includes reports whether a list of a rule contains value or the wildcard. If value is the wildcard itself, every list
// matches.
func includes(list []string, value string) bool {
	return value == "*" || slices.Contains(list, "*") || slices.Contains(list, value)
}

func resourcesOf(rules []admissionregistrationv1.RuleWithOperations) (all []string) {
	for _, rule := range rules {
		all = append(all, rule.Resources...)
	}
	return all
}

// CheckResources returns errors for rules that cover a resource without a handler, since every call for such a resource
// would fail. With several handlers, a wildcard counts as covering such resources. With one handler, wildcards are
// accepted. If the resource of a handler is not known, CheckResources returns nil.
func (r *Registration) CheckResources(all []Handled) error {
	var types, resources []string
	for _, h := range all {
		if h.Resource == "" {
			return nil
		}
		types, resources = append(types, h.Type), append(resources, fmt.Sprintf("%q", h.Resource))
	}
	if len(all) == 0 {
		return nil
	}
	text := fmt.Sprintf("the handler takes a %s, whose resource is %s: every call for another resource would fail", types[0], resources[0])
	if len(all) > 1 {
		text = fmt.Sprintf("the handlers take %s: every call for another resource would fail", strings.Join(resources, ", "))
	}
	at := r.FieldPath().Child("rules")
	var errs field.ErrorList
	for i, rule := range r.Rules {
		for j, name := range rule.Resources {
			if !isHandled(rule, name, all) {
				errs = append(errs, field.Invalid(at.Index(i).Child("resources").Index(j), name, text))
			}
		}
	}
	return JoinFields(errs)
}

// isHandled reports whether handlers take every object of a resource in a rule, as far as that is known.
func isHandled(rule admissionregistrationv1.RuleWithOperations, name string, all []Handled) bool {
	base, sub, isSub := strings.Cut(name, "/")
	switch kind := kindsOfSubresources[sub]; {
	case !resourceName.MatchString(name):
		return true // it is reported as an invalid name
	case len(all) == 1:
		return name == all[0].Resource || strings.ContainsAny(name, "*/")
	case base == "*" || sub == "*":
		return false
	case kind != "":
		return slices.ContainsFunc(all, func(h Handled) bool { return h.Kinds[0].Kind == kind })
	case isSub && !slices.ContainsFunc(all, func(h Handled) bool { return h.Resource == base }):
		return false
	}
	return slices.ContainsFunc(all, func(h Handled) bool {
		return h.Resource == base && includes(rule.APIGroups, h.Kinds[0].Group) && includes(rule.APIVersions, h.Kinds[0].Version)
	})
}
