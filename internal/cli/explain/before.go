// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/rulematch"
	"github.com/admitkit/admitkit/pkg/chain"
)

// policies are the MutatingAdmissionPolicies, which the API server applies before mutating webhooks.
type policies struct {
	all map[string]*policy
	// bound has the names of the policies that have a binding. It is nil if the bindings are unknown.
	bound map[string]bool
	// known means that the list of policies is complete.
	known bool
}

// A policy has the fields that all API versions of MutatingAdmissionPolicy share.
type policy struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		MatchConstraints struct {
			ResourceRules []admissionregistrationv1.RuleWithOperations `json:"resourceRules"`
		} `json:"matchConstraints"`
		PolicyName string `json:"policyName"` // of a binding
	} `json:"spec"`
}

// add adds the MutatingAdmissionPolicies and their bindings among the objects. It ignores objects of other kinds.
func (p *policies) add(all []*objects.Object) error {
	for _, o := range all {
		if o.GVK.Group != admissionregistrationv1.GroupName || !strings.HasPrefix(o.GVK.Kind, "MutatingAdmissionPolicy") {
			continue
		}
		var read policy
		if err := json.Unmarshal(o.JSON, &read); err != nil {
			return problem.New("%s: %s: %w", o.Where(), o, err)
		}
		switch o.GVK.Kind {
		case "MutatingAdmissionPolicy":
			if p.all == nil {
				p.all = map[string]*policy{}
			}
			p.all[read.Metadata.Name] = &read
		case "MutatingAdmissionPolicyBinding":
			if p.bound != nil {
				p.bound[read.Spec.PolicyName] = true
			}
		}
	}
	return nil
}

// may returns the names of the policies that may change the object of a request. It does not evaluate their selectors
// and conditions. It also ignores the versions in their rules, because policies match equivalent versions too.
func (p *policies) may(a *knownRequest) []string {
	if a.Operation == admissionv1.Delete {
		return nil // there is nothing to change
	}
	var names []string
	for name, policy := range p.all {
		if p.bound != nil && !p.bound[name] {
			continue
		}
		if slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(rule admissionregistrationv1.RuleWithOperations) bool {
			rule.APIVersions = []string{"*"}
			return rulematch.Matches(rule, a.ruleRequest())
		}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// readPolicies reads the policies in the newest version that the cluster serves.
func (l *liveCluster) readPolicies(ctx context.Context, w *Facts) error {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		of := schema.GroupVersion{Group: admissionregistrationv1.GroupName, Version: version}
		all, err := cluster.List(ctx, l.config, of.WithResource("mutatingadmissionpolicies"))
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err):
			w.notes = append(w.notes, "admission policies are not considered: you may not list mutatingadmissionpolicies")
			return nil
		case err != nil:
			return err
		}
		w.policies.known, w.policies.bound = true, map[string]bool{}
		bindings, err := cluster.List(ctx, l.config, of.WithResource("mutatingadmissionpolicybindings"))
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
			w.policies.bound = nil
		case err != nil:
			return err
		}
		return w.policies.add(append(all, bindings...))
	}
	w.policies.known = true // no version is served, so there are none
	return nil
}

// byPolicy sets the result of a predicate to unknown if looks is true and an admission policy may change the object
// before webhooks are called. looks means that the predicate looks at the object.
func (t *explainer) byPolicy(p *Predicate, looks bool) {
	if looks && len(t.policies) > 0 && p.Answer != chain.Unknown {
		p.set(chain.Unknown, fmt.Sprintf("MutatingAdmissionPolicy %s may change the object before webhooks are called", or(t.policies)))
	}
}

// limitAnnotation is the annotation in which the plugin LimitRanger records the values that it set.
const limitAnnotation = "kubernetes.io/limit-ranger"

// withLimits explains the request as if LimitRanger had added its annotation. It returns nil if LimitRanger cannot add
// the annotation to the object, or if no condition reads annotations.
func (t *explainer) withLimits(ctx context.Context, engine *chain.Chain) (*chain.Explanation, error) {
	if isPod := t.req.resource.GroupResource() == (schema.GroupResource{Resource: "pods"}); !isPod || t.req.Operation != admissionv1.Create || t.req.SubResource != "" || t.noLimits {
		return nil, nil
	}
	if !slices.ContainsFunc(t.hooks, func(h hook) bool {
		return slices.ContainsFunc(h.conditions, func(c admissionregistrationv1.MatchCondition) bool {
			m := mentioned(c.Expression)
			return m.object && m.words["annotations"]
		})
	}) {
		return nil, nil
	}
	var pod map[string]any
	if err := json.Unmarshal(t.req.Object, &pod); err != nil {
		return nil, problem.New("%w", err)
	}
	metadata, _ := pod["metadata"].(map[string]any)
	if metadata == nil {
		return nil, nil
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	if annotations[limitAnnotation] == nil {
		annotations[limitAnnotation] = "LimitRanger plugin set: cpu request for container app"
	}
	request := t.req.Request
	var err error
	if request.Object, err = json.Marshal(pod); err != nil {
		return nil, err
	}
	return engine.Explain(ctx, request)
}

// byLimits sets the result of a condition on the annotations of a Pod to unknown if LimitRanger may add an annotation.
func (t *explainer) byLimits(webhook, predicate int, p *Predicate) {
	m := mentioned(p.Expression)
	if t.limited == nil || p.Answer == chain.Unknown || !m.object || !m.words["annotations"] {
		return
	}
	other := t.limited.Webhooks[webhook].Predicates
	if strings.Contains(p.Expression, limitAnnotation) || predicate >= len(other) || other[predicate].Result != p.Answer {
		p.set(chain.Unknown, fmt.Sprintf("it is %s for the object as it is written, but the plugin LimitRanger of the API server may add the annotation %s first", value(p), limitAnnotation))
	}
}

// noLimits reports whether a namespace of the cluster is known to have no LimitRange.
func (l *liveCluster) noLimits(ctx context.Context, namespace string) (bool, error) {
	found, err := l.client.CoreV1().LimitRanges(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, cluster.Explain(l.config, err)
	}
	return len(found.Items) == 0, nil
}
