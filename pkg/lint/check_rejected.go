// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/versions"
	"github.com/admitkit/admitkit/pkg/chain"
)

// rejected reports fields that the API server rejects.
func (l *linter) rejected(c *configuration) {
	for _, rejected := range rejectedFields(c) {
		path, e := rejected.Path, rejected.Err
		var of *webhook
		if index, ok := webhookIndex(path); ok && index < len(c.webhooks) {
			of = c.webhooks[index]
		}
		f := l.foundIn(ruleOf(path, e), c, nil, e.ErrorBody())
		f.Path = path
		if of != nil {
			f.Webhook = of.Name
		}
	}
}

// rejectedFields returns the fields of a configuration that the API server would reject.
func rejectedFields(c *configuration) []*chain.ConfigurationError {
	given := *c.decoded.DeepCopy()
	given.Name, given.GenerateName = c.Name, ""
	if c.Name == "" && c.GenerateName != "" {
		given.Name = strings.TrimRight(c.GenerateName, "-.") + "-1"
	}
	if c.v1beta1 {
		fillV1Beta1(&given)
	}
	// A handler for a webhook that does not exist makes New fail before it builds an engine, even if all fields are
	// valid.
	webhooks := chain.Webhooks{Handlers: map[string]http.Handler{"-": nil}}
	if c.mutating {
		webhooks.Mutating = []*admissionregistrationv1.MutatingWebhookConfiguration{&given}
	} else {
		webhooks.Validating = []*admissionregistrationv1.ValidatingWebhookConfiguration{asValidating(&given)}
	}
	_, err := chain.New(webhooks, chain.Options{})
	return chain.ConfigurationErrors(err)
}

// fillV1Beta1 makes a v1beta1 configuration acceptable as v1. It sets fields that v1 requires and for which v1beta1 has
// defaults. It also replaces values of sideEffects that only v1beta1 accepts.
func fillV1Beta1(c *admissionregistrationv1.MutatingWebhookConfiguration) {
	none := admissionregistrationv1.SideEffectClassNone
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		if w.SideEffects == nil || *w.SideEffects == admissionregistrationv1.SideEffectClassSome || *w.SideEffects == admissionregistrationv1.SideEffectClassUnknown {
			w.SideEffects = &none
		}
		if len(w.AdmissionReviewVersions) == 0 {
			w.AdmissionReviewVersions = []string{"v1beta1"}
		}
	}
}

func asValidating(c *admissionregistrationv1.MutatingWebhookConfiguration) *admissionregistrationv1.ValidatingWebhookConfiguration {
	v := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: c.ObjectMeta}
	for _, w := range c.Webhooks {
		v.Webhooks = append(v.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
		})
	}
	return v
}

func webhookIndex(path string) (int, bool) {
	var index int
	_, err := fmt.Sscanf(path, "webhooks[%d]", &index)
	return index, err == nil
}

// ruleOf returns the ID of the rule for a validation error, by the field in the error.
func ruleOf(path string, e *field.Error) string {
	steps := strings.Split(path, ".")
	if steps[0] == "metadata" || len(steps) < 2 {
		return "AK102"
	}
	switch name, _, _ := strings.Cut(steps[1], "["); name {
	case "name":
		if e.Type == field.ErrorTypeDuplicate {
			return "AK103"
		}
		return "AK102"
	case "rules":
		if e.Origin == chain.OverlappingResources {
			return "AK105"
		}
		return "AK104"
	case "clientConfig":
		return "AK107"
	case "admissionReviewVersions":
		return "AK109"
	case "namespaceSelector", "objectSelector":
		return "AK110"
	case "matchConditions":
		return "AK111"
	}
	return "AK108"
}

// apiVersion reports configurations whose apiVersion the API server does not serve.
func (l *linter) apiVersion(c *configuration) {
	v, known := versions.Parse(l.options.Kubernetes)
	switch {
	case c.v1beta1 && (!known || !v.Before(versions.WithoutBeta)):
		l.foundIn("AK113", c, field.NewPath("apiVersion"), "admissionregistration.k8s.io/v1beta1 is not served by Kubernetes 1.22 and later")
	case !c.v1beta1 && known && v.Before(versions.V1):
		l.foundIn("AK113", c, field.NewPath("apiVersion"), "admissionregistration.k8s.io/v1 is not served before Kubernetes 1.16").
			withFix("Use apiVersion: admissionregistration.k8s.io/v1beta1, and set every field, because the defaults differ.")
	}
}

// newFields reports fields that the API server is too old to know.
func (l *linter) newFields(h *webhook) {
	v, known := versions.Parse(l.options.Kubernetes)
	if !known {
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&h.MutatingWebhook)
	if err != nil {
		return // unreachable: the webhook was decoded from JSON
	}
	for _, loss := range versions.Fit(content, v) {
		l.found("AK116", h, h.at, loss.String()).Path += "." + loss.Path
	}
	if v.Before(versions.NameLabel) {
		l.nameLabel(h)
	}
}

// nameLabel reports a namespaceSelector that uses a label which the API server does not set.
func (l *linter) nameLabel(h *webhook) {
	effect := "the selector excludes no namespace"
	switch {
	case versions.SelectedByName(h.NamespaceSelector):
		effect = "the selector matches no namespace"
	case len(versions.ExcludedByName(h.NamespaceSelector)) == 0:
		return
	}
	l.found("AK116", h, h.at.Child("namespaceSelector"), "namespaces have no label kubernetes.io/metadata.name before Kubernetes 1.21: "+effect).
		withFix("Add the label to the namespaces: kubectl label namespace NAME kubernetes.io/metadata.name=NAME")
}

// staticSuffix is the suffix of the names of configurations in static manifests, which the API server reads from its
// disk (k8s.io/apiserver pkg/admission/plugin/manifest: StaticConfigSuffix).
const staticSuffix = ".static.k8s.io"

func (l *linter) static(c *configuration) {
	if !strings.HasSuffix(c.Name, staticSuffix) {
		return
	}
	if l.options.Live {
		l.foundIn("AK114", c, field.NewPath("metadata", "name"), "names that end in "+staticSuffix+" are reserved for manifests on the disk of the API server").
			withFix("Choose another name.")
		return
	}
	for _, h := range c.webhooks {
		if h.ClientConfig.Service != nil {
			l.found("AK114", h, h.at.Child("clientConfig", "service"), "a static manifest cannot name a service: the API server cannot resolve services when it reads the manifest")
		}
	}
}

// resourceOrder reports lists of resources that the API server would reject in another order.
func (l *linter) resourceOrder(h *webhook) {
	for i, rule := range h.Rules {
		for _, resource := range rule.Resources {
			if covering := coveredBy(resource, rule.Resources); covering != "" && !l.isRejected(h, i) {
				l.found("AK106", h, h.at.Child("rules").Index(i).Child("resources"),
					fmt.Sprintf("%q covers %q: the API server accepts this list only in this order", covering, resource))
				break
			}
		}
	}
}

// coveredBy returns the wildcard of a list that covers a resource, or "".
func coveredBy(resource string, all []string) string {
	name, sub, hasSub := strings.Cut(resource, "/")
	for _, wildcard := range []string{"*", name + "/*", "*/" + sub} {
		plain := wildcard == "*"
		if wildcard != resource && plain != hasSub && slices.Contains(all, wildcard) {
			return wildcard
		}
	}
	return ""
}

func (l *linter) isRejected(h *webhook, rule int) bool {
	at := h.at.Child("rules").Index(rule).String()
	return slices.ContainsFunc(l.findings, func(f Finding) bool {
		return f.Index == h.of.index && f.Rule == "AK105" && strings.HasPrefix(f.Path, at)
	})
}

// sameConfigurations reports configurations of the same kind and name. It skips those without rules, which may be
// kustomize patches.
func (l *linter) sameConfigurations() {
	seen := map[string]*configuration{}
	for _, c := range l.configurations {
		if c.Name == "" || !slices.ContainsFunc(c.webhooks, func(h *webhook) bool { return len(h.Rules) > 0 }) {
			continue
		}
		if seen[c.String()] == nil {
			seen[c.String()] = c
			continue
		}
		rule := "AK115"
		if strings.HasSuffix(c.Name, staticSuffix) {
			rule = "AK114"
		}
		l.foundIn(rule, c, field.NewPath("metadata", "name"), "another configuration has the same name: "+c.String())
	}
}

var (
	resourceName = regexp.MustCompile(`^(\*|[a-z0-9.-]+)(/(\*|[a-z0-9.-]+))?$`)
	groupName    = regexp.MustCompile(`^(\*|[a-z0-9.-]*)$`)
	versionName  = regexp.MustCompile(`^(\*|[a-z]([a-z0-9-]*[a-z0-9])?)?$`)
)
