// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/chain"
)

// rejected reports what the API server refuses: package chain holds configurations against its rules.
func (l *linter) rejected(c *configuration) {
	for _, rejected := range rejectedFields(c) {
		path, e := rejected.Path, rejected.Err
		var of *hook
		if index, ok := hookIndex(path); ok && index < len(c.hooks) {
			of = c.hooks[index]
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
	given := *c.as.DeepCopy()
	given.Name, given.GenerateName = c.Name, ""
	if c.Name == "" && c.GenerateName != "" {
		given.Name = strings.TrimRight(c.GenerateName, "-.") + "-1"
	}
	if c.old {
		fillOld(&given)
	}
	// A handler that no webhook has is an error too, so that no engine is made.
	webhooks := chain.Webhooks{Handlers: map[string]http.Handler{"-": nil}}
	if c.mutating {
		webhooks.Mutating = []*admissionregistrationv1.MutatingWebhookConfiguration{&given}
	} else {
		webhooks.Validating = []*admissionregistrationv1.ValidatingWebhookConfiguration{asValidating(&given)}
	}
	_, err := chain.New(webhooks, chain.Options{})
	return chain.ConfigurationErrors(err)
}

// fillOld sets what v1beta1 fills in and v1 requires.
func fillOld(c *admissionregistrationv1.MutatingWebhookConfiguration) {
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

func hookIndex(path string) (int, bool) {
	var index int
	_, err := fmt.Sscanf(path, "webhooks[%d]", &index)
	return index, err == nil
}

// ruleOf tells which rule a refusal breaks, by the field that it names.
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

// oldVersion reports v1beta1.
func (l *linter) oldVersion(c *configuration) {
	if c.old && (l.options.Kubernetes == "" || l.isAtLeast(1, 22)) {
		l.foundIn("AK113", c, field.NewPath("apiVersion"), "admissionregistration.k8s.io/v1beta1 is not served by Kubernetes 1.22 and later")
	}
}

// staticSuffix ends the names of configurations that the API server reads from its disk
// (k8s.io/apiserver pkg/admission/plugin/manifest: StaticConfigSuffix).
const staticSuffix = ".static.k8s.io"

func (l *linter) static(c *configuration) {
	if !strings.HasSuffix(c.Name, staticSuffix) {
		return
	}
	if l.options.Live {
		l.foundIn("AK114", c, field.NewPath("metadata", "name"), "names that end in "+staticSuffix+" are reserved for manifests on the disk of the API server").
			with("Give it another name.")
		return
	}
	for _, h := range c.hooks {
		if h.ClientConfig.Service != nil {
			l.found("AK114", h, h.at.Child("clientConfig", "service"), "a static manifest names no service, since the API server reads it before it knows any")
		}
	}
}

// resourceOrder reports lists that the API server takes in this order and refuses in another.
func (l *linter) resourceOrder(h *hook) {
	for i, rule := range h.Rules {
		for _, resource := range rule.Resources {
			if covering := coveredBy(resource, rule.Resources); covering != "" && !l.isRefused(h, i) {
				l.found("AK106", h, h.at.Child("rules").Index(i).Child("resources"),
					fmt.Sprintf("%q covers %q: the API server takes this list as it is and refuses it in another order", covering, resource))
				break
			}
		}
	}
}

// coveredBy returns the wildcard that the API server does not allow beside a resource.
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

func (l *linter) isRefused(h *hook, rule int) bool {
	at := h.at.Child("rules").Index(rule).String()
	return slices.ContainsFunc(l.findings, func(f Finding) bool {
		return f.Index == h.of.index && f.Rule == "AK105" && strings.HasPrefix(f.Path, at)
	})
}

// sameConfigurations reports configurations of one kind and name. One without rules may be a patch of the other.
func (l *linter) sameConfigurations() {
	seen := map[string]*configuration{}
	for _, c := range l.configurations {
		if c.Name == "" || !slices.ContainsFunc(c.hooks, func(h *hook) bool { return len(h.Rules) > 0 }) {
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
		l.foundIn(rule, c, field.NewPath("metadata", "name"), "there is another "+c.String())
	}
}

var (
	resourceName = regexp.MustCompile(`^(\*|[a-z0-9.-]+)(/(\*|[a-z0-9.-]+))?$`)
	groupName    = regexp.MustCompile(`^(\*|[a-z0-9.-]*)$`)
	versionName  = regexp.MustCompile(`^(\*|[a-z]([a-z0-9-]*[a-z0-9])?)?$`)
)
