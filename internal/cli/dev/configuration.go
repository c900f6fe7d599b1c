// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"net/url"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A configuration is a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration.
type configuration struct {
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
}

const (
	// devLabel marks the configurations of dev. Its value is the id of the run.
	devLabel    = "admitkit.dev/dev"
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// An adaptation describes how dev changes the configurations of hooks before it registers them.
type adaptation struct {
	proxy *proxy
	// prefix is added to the names of the objects. owner is the value of their label.
	prefix, owner string
	// ignore sets failurePolicy to Ignore. careful shortens timeouts and excludes kube-system. Both protect the other
	// users of an existing cluster.
	ignore, careful bool
}

// maxTimeout is the longest timeout of webhooks in an existing cluster, in seconds.
const maxTimeout = 5

// mount returns the configurations to register, and the route to each of their webhooks.
func (f *adaptation) mount(all []configuration, to *upstream) ([]configuration, map[string]route) {
	routes := map[string]route{}
	var mounted []configuration
	for _, c := range all {
		if c.mutating != nil {
			m := c.mutating.DeepCopy()
			f.label(&m.ObjectMeta)
			for i := range m.Webhooks {
				w := &m.Webhooks[i]
				key := "mutate/" + m.Name + "/" + w.Name
				routes[key] = route{w.Name, "mutating", to, pathOf(w.ClientConfig)}
				w.ClientConfig = f.address(key)
				f.restrict(&w.FailurePolicy, &w.TimeoutSeconds, &w.NamespaceSelector)
			}
			mounted = append(mounted, configuration{mutating: m})
		}
		if c.validating != nil {
			v := c.validating.DeepCopy()
			f.label(&v.ObjectMeta)
			for i := range v.Webhooks {
				w := &v.Webhooks[i]
				key := "validate/" + v.Name + "/" + w.Name
				routes[key] = route{w.Name, "validating", to, pathOf(w.ClientConfig)}
				w.ClientConfig = f.address(key)
				f.restrict(&w.FailurePolicy, &w.TimeoutSeconds, &w.NamespaceSelector)
			}
			mounted = append(mounted, configuration{validating: v})
		}
	}
	return mounted, routes
}

// label sets the name and label of an object, and removes fields that an API server sets.
func (f *adaptation) label(m *metav1.ObjectMeta) {
	labels, annotations := m.Labels, m.Annotations
	if labels == nil {
		labels = map[string]string{}
	}
	labels[devLabel] = f.owner
	delete(annotations, lastApplied)
	*m = metav1.ObjectMeta{Name: f.prefix + m.Name, Labels: labels, Annotations: annotations}
}

func (f *adaptation) address(key string) admissionregistrationv1.WebhookClientConfig {
	url := f.proxy.address(key)
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: f.proxy.ca.Bundle}
}

// restrict limits the effect of a webhook on a cluster, according to f.ignore and f.careful.
func (f *adaptation) restrict(policy **admissionregistrationv1.FailurePolicyType, timeout **int32, selector **metav1.LabelSelector) {
	if f.ignore {
		ignore := admissionregistrationv1.Ignore
		*policy = &ignore
	}
	if !f.careful {
		return
	}
	if *timeout == nil || **timeout > maxTimeout {
		short := int32(maxTimeout)
		*timeout = &short
	}
	exclude := metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{metav1.NamespaceSystem}}
	if *selector == nil {
		*selector = &metav1.LabelSelector{}
	}
	if slices.ContainsFunc((*selector).MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == exclude.Key && r.Operator == exclude.Operator && slices.Contains(r.Values, metav1.NamespaceSystem)
	}) {
		return
	}
	(*selector).MatchExpressions = append(slices.Clone((*selector).MatchExpressions), exclude)
}

// pathOf returns the URL path of a webhook.
func pathOf(c admissionregistrationv1.WebhookClientConfig) string {
	switch {
	case c.URL != nil:
		if u, err := url.Parse(*c.URL); err == nil {
			return cmp.Or(u.Path, "/")
		}
	case c.Service != nil && c.Service.Path != nil:
		return cmp.Or(*c.Service.Path, "/")
	}
	return "/"
}

func (c *configuration) name() string {
	if c.mutating != nil {
		return c.mutating.Name
	}
	return c.validating.Name
}

// resource returns the resource name of the configuration's kind.
func (c *configuration) resource() string {
	if c.mutating != nil {
		return "mutatingwebhookconfigurations"
	}
	return "validatingwebhookconfigurations"
}
