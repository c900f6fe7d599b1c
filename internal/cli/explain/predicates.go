// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/internal/rulematch"
	"github.com/admitkit/admitkit/pkg/chain"
)

// predicates returns the results that the chain computed. If a result depends on facts that are missing, it is unknown.
func (t *explainer) predicates(webhook int, e *chain.Explained) []Predicate {
	h := &t.hooks[webhook]
	all := make([]Predicate, 0, len(e.Predicates))
	for place, p := range e.Predicates {
		result := Predicate{Predicate: p.Reason, Condition: p.Condition, Answer: p.Result, Detail: p.String()}
		if len(p.Mismatches) > 1 {
			result.Summary = p.Detail
		}
		switch p.Reason {
		case chain.ByResource:
			t.exempt(h, &result)
		case chain.ByNamespaceSelector:
			t.namespace(h, &result)
			t.byPolicy(&result, t.labelsItself() && result.Answer != chain.Errs && h.namespaces != nil && len(h.namespaces.MatchLabels)+len(h.namespaces.MatchExpressions) > 0)
		case chain.ByObjectSelector:
			t.byPolicy(&result, h.objects != nil && len(h.objects.MatchLabels)+len(h.objects.MatchExpressions) > 0)
		case chain.ByRules:
			t.versions(h, &result)
		case chain.ByMatchCondition:
			i := slices.IndexFunc(h.conditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == p.Condition })
			result.Expression = strings.TrimSpace(h.conditions[i].Expression)
			t.condition(h, e, &result)
			t.byLimits(webhook, place, &result)
			t.byPolicy(&result, mentioned(result.Expression).object)
		}
		all = append(all, result)
	}
	return all
}

// exempt corrects the result of the predicate chain.ByResource, which excludes some resources from webhooks. Since
// Kubernetes 1.37, no webhook is called for a resource that is not stored, such as a TokenReview. Webhooks of static
// manifests are called for all other resources.
func (t *explainer) exempt(h *hook, p *Predicate) {
	switch {
	case k8svalidation.Virtual(t.req.resource.GroupResource()) && t.facts.excludesVirtual():
		p.set(chain.Fails, fmt.Sprintf("since Kubernetes 1.37 no webhook is called for a %s", t.req.kind.Kind))
	case p.Answer == chain.Fails && h.static:
		p.set(chain.Holds, fmt.Sprintf("webhooks of static manifests are also called for a %s", t.req.kind.Kind))
	}
}

func (w *Facts) excludesVirtual() bool {
	_, minor, _ := strings.Cut(w.Kubernetes, ".")
	n, err := strconv.Atoi(strings.TrimRight(minor, "+"))
	return err == nil && n >= 37
}

// namespace sets the result of a namespaceSelector to unknown if it reads unknown labels. The label with the name of
// the namespace is always known.
func (t *explainer) namespace(h *hook, p *Predicate) {
	if !t.namespaceUnknown || t.labelsItself() {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(h.namespaces)
	if err != nil || selector.Empty() {
		return // if err is not nil, chain has already set the result
	}
	known := labels.Set{corev1.LabelMetadataName: t.req.Namespace}
	requirements, _ := selector.Requirements()
	var unknown []string
	for _, r := range requirements {
		switch {
		case r.Key() != corev1.LabelMetadataName:
			unknown = append(unknown, r.String())
		case !r.Matches(known):
			p.set(chain.Fails, fmt.Sprintf("%s: the namespace is %s", r.String(), t.req.Namespace))
			return
		}
	}
	if len(unknown) > 0 {
		p.set(chain.Unknown, fmt.Sprintf("%s: the labels of namespace %q are unknown", strings.Join(unknown, ","), t.req.Namespace))
	}
}

// labelsItself reports whether a namespaceSelector reads the labels of the object itself. It does so for Namespaces,
// and for resources named namespaces of any group: the API server ignores the group (predicates/namespace,
// GetNamespaceLabels).
func (t *explainer) labelsItself() bool {
	r, op := t.req.resource, admission.Operation(t.req.Operation)
	return r.Resource == "namespaces" && (r.Group == "" || t.req.SubResource == "" && (op == admission.Create || op == admission.Update))
}

// versions handles rules that match only other versions of the resource. It sets their result to unknown if it is
// unknown whether the API server serves these versions.
func (t *explainer) versions(h *hook, p *Predicate) {
	if r := t.req.recording; r != nil && r.original != t.req.resource.GroupVersionResource && !h.equivalent {
		t.exactRules(h, p)
		return
	}
	if p.Answer != chain.Fails || !t.req.resource.unsure || !h.equivalent {
		return
	}
	for i, rule := range h.rules {
		rule.APIVersions = []string{"*"}
		if rulematch.Matches(rule, t.req.ruleRequest()) {
			p.set(chain.Unknown, fmt.Sprintf("rules[%d] is for other versions of %s, and it is unknown whether they are served", i, t.req.resource.GroupResource()))
			return
		}
	}
}

// condition sets the result of a condition to unknown if it reads unknown facts.
func (t *explainer) condition(h *hook, e *chain.Explained, p *Predicate) {
	mentions := mentioned(p.Expression)
	converted := schema.GroupVersionKind(e.Kind) != t.req.kind
	switch {
	case p.Answer == chain.Unknown:
	case mentions.words["userInfo"] && mentions.words["extra"] && t.req.extraUnknown:
		p.set(chain.Unknown, fmt.Sprintf("the extra fields of user %s are unknown", t.req.User.Username))
	case mentions.words["userInfo"] && mentions.words["uid"] && t.req.uidUnknown:
		p.set(chain.Unknown, fmt.Sprintf("the uid of user %s is unknown", t.req.User.Username))
	case t.req.recording != nil:
		t.recordedCondition(h, mentions, p)
	case converted && p.Answer == chain.Errs && convertsByWebhook(t.req.resource.definition):
		p.set(chain.Unknown, fmt.Sprintf("it reads version %s, and only the conversion webhook of the kind converts to it", e.Kind.Version))
	case !mentions.body:
	case t.req.generated && (t.req.kind != scaleKind || mentions.words["status"]):
		p.set(chain.Unknown, fmt.Sprintf("it reads the %s that a client sends, which is unknown", t.req.kind.Kind))
	case t.noDefaults():
		p.set(chain.Unknown, fmt.Sprintf("it is %s for the object as it is written, but the API server may first set defaults, which are unknown for a %s",
			value(p), t.req.kind.Kind))
	case !h.mutating && t.byRegistry(mentions) != "":
		p.set(chain.Unknown, fmt.Sprintf("it is %s for the object as it is written, but the API server may set %s before it calls validating webhooks",
			value(p), t.byRegistry(mentions)))
	case t.req.Operation == "CREATE" && t.req.SubResource == "":
		for _, f := range pluginFields[t.req.resource.GroupResource()] {
			if mentions.words[f.name] && !(f.ifUnset && t.has(f.name)) && !(f.plugin == "LimitRanger" && t.noLimits) {
				p.set(chain.Unknown, fmt.Sprintf("it is %s for the object as it is written, but the plugin %s of the API server may change %s first",
					value(p), f.plugin, f.name))
				return
			}
		}
	}
}

func value(p *Predicate) string {
	switch p.Answer {
	case chain.Holds:
		return "true"
	case chain.Fails:
		return "false"
	}
	return "an error"
}

// noDefaults reports whether the defaults that the API server sets in the object are unknown.
func (t *explainer) noDefaults() bool {
	if t.req.resource.definition != nil {
		return false
	}
	object, err := scheme.Scheme.New(t.req.kind)
	if err != nil {
		return true // a custom resource without its definition
	}
	return !k8svalidation.Knows(object) && !plain[t.req.kind.Kind]
}

// plain has the kinds for which the API server sets no defaults in fields that conditions read.
var plain = map[string]bool{"Role": true, "ClusterRole": true, "Lease": true, "ResourceQuota": true, "Event": true, "Scale": true, "Eviction": true, "Binding": true,
	"PodExecOptions": true, "PodPortForwardOptions": true, "PodProxyOptions": true, "ServiceProxyOptions": true, "NodeProxyOptions": true}

// has reports whether the object has a non-empty field of that name at any depth.
func (t *explainer) has(field string) bool {
	var object any
	return json.Unmarshal(t.req.Object, &object) == nil && hasField(object, field)
}

func hasField(value any, field string) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return hasField(item, field) })
	case map[string]any:
		for name, item := range v {
			list, isList := item.([]any)
			if name == field && item != nil && item != "" && (!isList || len(list) > 0) || hasField(item, field) {
				return true
			}
		}
	}
	return false
}

// mentions are the variables and fields that an expression reads.
type mentions struct {
	words map[string]bool
	// object is true if the expression reads any part of the object. body is true if it reads more than the metadata
	// and the kind.
	object, body bool
}

var expressionWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`) })

var objectHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(object|oldObject)\s*(\.\s*(metadata\s*\.\s*(name|namespace|labels|annotations|generateName)|kind|apiVersion)\b|[!=]=\s*null)`)
})

func mentioned(expression string) mentions {
	m := mentions{words: map[string]bool{}}
	for _, word := range expressionWord().FindAllString(expression, -1) {
		m.words[word] = true
	}
	m.object = m.words["object"]
	for _, word := range expressionWord().FindAllString(objectHead().ReplaceAllString(expression, ""), -1) {
		if word == "object" || word == "oldObject" {
			m.body = true
		}
	}
	return m
}
