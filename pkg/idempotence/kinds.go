// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// named sets the plural name and the scope of a custom resource from the rules of the webhooks. It leaves built-in
// kinds alone.
func (s Subject) named(k *objects.Kind) *objects.Kind {
	if k.GoType == nil {
		s.pluralize(k)
		k.Namespaced = !s.inClusterOnly(k)
	}
	return k
}

// guessesScope reports whether the scope of a custom resource is a guess: nothing declares it, so the harness assumes
// that the resource is namespaced.
func (o *options) guessesScope(s Subject, k *objects.Kind) bool {
	if k.GoType != nil || k.Custom != nil || !k.Namespaced {
		return false
	}
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			if rule.Scope != nil && *rule.Scope == admissionregistrationv1.NamespacedScope {
				return false
			}
		}
	}
	return !slices.ContainsFunc(o.samples, func(s any) bool {
		gvk, err := objects.GVKOf(s)
		return err == nil && gvk == k.GroupVersionKind && objects.NamespaceOf(s, "") != ""
	})
}

// inClusterOnly reports whether there are rules for the resource and all of them have the scope Cluster.
func (s Subject) inClusterOnly(k *objects.Kind) bool {
	found := false
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			if !session.HasOrAll(rule.APIGroups, k.Group, "*") || !slices.Contains(rule.Resources, k.Resource.Resource) {
				continue
			}
			if rule.Scope == nil || *rule.Scope != admissionregistrationv1.ClusterScope {
				return false
			}
			found = true
		}
	}
	return found
}

// pluralize sets the plural name of a custom resource from the rules. The name cannot be derived from the kind: the
// plural of Gateway may be gateways or gatewaies.
func (s Subject) pluralize(k *objects.Kind) {
	var names []string
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			if !session.HasOrAll(rule.APIGroups, k.Group, "*") || !session.HasOrAll(rule.APIVersions, k.Version, "*") {
				continue
			}
			if slices.Contains(rule.Resources, k.Resource.Resource) {
				return
			}
			names = append(names, rule.Resources...)
		}
	}
	like := strings.ToLower(k.Kind)
	for _, name := range names {
		if !strings.Contains(name, "/") && len(name) > len(like)/2 && strings.HasPrefix(name, like[:len(like)-1]) {
			k.Resource.Resource = name
			return
		}
	}
}

// kindOf returns the kind for a GVK. For a custom resource, the details come from its CustomResourceDefinition, or else
// from the rules.
func (o *options) kindOf(subject Subject, gvk schema.GroupVersionKind) *objects.Kind {
	k := objects.KindOf(gvk)
	d := o.defined[gvk]
	if d == nil {
		return subject.named(k)
	}
	k.Define(d)
	return k
}

// kindsOf returns those kinds of the samples and CustomResourceDefinitions that the webhooks handle. If there are none,
// it returns the usual kinds that the webhooks handle. It fails if they handle none of these.
func kindsOf(subject Subject, o *options) ([]*objects.Kind, error) {
	var kinds []*objects.Kind
	seen := map[schema.GroupVersionKind]bool{}
	add := func(gvk schema.GroupVersionKind) {
		k := o.kindOf(subject, gvk)
		if !seen[gvk] && slices.ContainsFunc(subject.webhooks, func(w *session.Webhook) bool {
			return w.Handles(k, admissionv1.Create) || w.Handles(k, admissionv1.Update) || w.Handles(k, admissionv1.Delete)
		}) {
			seen[gvk], kinds = true, append(kinds, k)
		}
	}
	for _, s := range o.samples {
		gvk, err := objects.GVKOf(s)
		if err != nil {
			return nil, err
		}
		add(gvk)
	}
	for _, gvk := range o.defined.Kinds() {
		add(gvk)
	}
	if len(kinds) > 0 {
		return kinds, nil
	}
	for _, gvk := range usualKinds {
		add(gvk)
	}
	if len(kinds) == 0 {
		return nil, &Error{Reason: Reason{Code: ReasonUnknownKinds}}
	}
	return kinds, nil
}

// untried returns the resources of the rules for which there is no kind in the list, such as "deployments.apps". It
// leaves out subresources and wildcards.
func (s Subject) untried(kinds []*objects.Kind) (names []string) {
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			for _, resource := range rule.Resources {
				if strings.ContainsAny(resource, "/*") || slices.Contains(rule.APIGroups, "*") {
					continue
				}
				for _, group := range rule.APIGroups {
					name := strings.TrimSuffix(resource+"."+group, ".")
					tried := slices.ContainsFunc(kinds, func(k *objects.Kind) bool {
						return k.Resource.Resource == resource && k.Resource.Group == group
					})
					if !tried && !slices.Contains(names, name) {
						names = append(names, name)
					}
				}
			}
		}
	}
	return names
}

// usualKinds lists the kinds that webhooks mutate most often: those with a Pod template, and some others.
var usualKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	{Version: "v1", Kind: "Namespace"},
	{Version: "v1", Kind: "ReplicationController"},
	{Version: "v1", Kind: "PodTemplate"},
}
