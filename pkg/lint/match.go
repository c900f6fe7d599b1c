// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/rulematch"
)

// A request is a typical request to the API server. The rules check whether a webhook is called for it.
type request struct {
	schema.GroupVersionResource
	subresource string
	kind        schema.GroupVersionKind // of the object
	operation   admissionregistrationv1.OperationType
	namespace   string // empty for cluster-scoped objects
	name        string
	users       []string       // possible users
	labels      known          // labels of the object
	object      map[string]any // nil if the object is unknown
}

// known holds the known labels of an object. If complete is false, the object can have other labels.
type known struct {
	labels   map[string]string
	complete bool
}

// surely reports whether the webhook is called for the request, whatever the unknown labels are. If the answer depends
// on them, surely returns false.
func (l *linter) surely(h *webhook, r request) bool {
	return h.hasRule(r) && l.surelySelects(h, r) && l.surelyMeetsConditions(h, r)
}

func (l *linter) surelySelects(h *webhook, r request) bool {
	return (r.namespace == "" || selects(h.NamespaceSelector, l.labelsOf(r.namespace))) && selects(h.ObjectSelector, r.labels)
}

// labelsOf returns the known labels of a namespace. They are complete if the input has the Namespace.
func (l *linter) labelsOf(namespace string) known {
	all := map[string]string{corev1.LabelMetadataName: namespace}
	given := l.around.namespaces[namespace]
	if given != nil {
		for key, value := range given.Labels {
			all[key] = value
		}
	}
	return known{all, given != nil}
}

func selects(selector *metav1.LabelSelector, k known) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false
	}
	requirements, _ := parsed.Requirements()
	for _, r := range requirements {
		if _, there := k.labels[r.Key()]; !there && !k.complete {
			return false
		}
		if !r.Matches(labels.Set(k.labels)) {
			return false
		}
	}
	return true
}

// hasRule reports whether a rule of the webhook covers the request.
func (h *webhook) hasRule(r request) bool {
	return slices.ContainsFunc(h.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return matches(rule, r) })
}

// matches reports whether the rule covers the request. It ignores equivalent versions, because each resource that this
// package uses in a request has one version in every supported cluster.
func matches(rule admissionregistrationv1.RuleWithOperations, r request) bool {
	return rulematch.Matches(rule, rulematch.Request{
		Operation: r.operation, Group: r.Group, Version: r.Version, Resource: r.Resource, SubResource: r.subresource, Namespaced: r.namespace != "",
	})
}

// serviceOf returns the Service in front of the webhook's Pods, from clientConfig.service or clientConfig.url. It
// returns false if there is none, or if the Service is known to select no Pods.
func (l *linter) serviceOf(h *webhook) (namespace, name string, ok bool) {
	namespace, name, ok = h.named()
	if !ok || namespace == "default" && name == "kubernetes" { // the API server, or an aggregated API server behind it
		return "", "", false
	}
	if s := l.around.services[namespace+"/"+name]; s != nil && (s.Spec.Type == corev1.ServiceTypeExternalName || len(s.Spec.Selector) == 0) {
		return "", "", false // the Service selects no Pods
	}
	return namespace, name, true
}

// named returns the Service that clientConfig names, by service or by a url with the DNS name of a Service.
func (h *webhook) named() (namespace, name string, ok bool) {
	if s := h.ClientConfig.Service; s != nil {
		return s.Namespace, s.Name, s.Namespace != "" && s.Name != ""
	}
	if h.ClientConfig.URL == nil {
		return "", "", false
	}
	u, err := url.Parse(*h.ClientConfig.URL)
	if err != nil {
		return "", "", false
	}
	parts := strings.Split(u.Hostname(), ".")
	if len(parts) < 3 || parts[2] != "svc" {
		return "", "", false
	}
	return parts[1], parts[0], true
}

// workloadsOf returns the known workloads behind a webhook.
func (l *linter) workloadsOf(h *webhook) []workload {
	namespace, name, ok := l.serviceOf(h)
	service := l.around.services[namespace+"/"+name]
	if !ok || service == nil {
		return nil
	}
	var all []workload
	for _, w := range l.around.workloads {
		if w.namespace == namespace && labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(w.template.Labels)) {
			all = append(all, w)
		}
	}
	return all
}

// podsOf returns the requests that create the Pods of a webhook: one for each workload, or an example if no workload is
// known.
func (l *linter) podsOf(h *webhook) []request {
	namespace, _, ok := l.serviceOf(h)
	if !ok {
		return nil
	}
	var all []request
	for _, w := range l.workloadsOf(h) {
		all = append(all, podOf(w))
	}
	if all == nil {
		all = []request{podIn(namespace)}
	}
	return all
}
