// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/builtin"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/pkg/chain"
)

// A hook is a webhook of the configurations.
type hook struct {
	configuration, name string
	mutating, static    bool
	rules               []admissionregistrationv1.RuleWithOperations
	equivalent, ignore  bool
	effects             admissionregistrationv1.SideEffectClass
	namespaces          *metav1.LabelSelector
	objects             *metav1.LabelSelector
	conditions          []admissionregistrationv1.MatchCondition
	timeout             int32
	reinvocation        admissionregistrationv1.ReinvocationPolicyType
}

// Explain tells of each object.
func (w *World) Explain(ctx context.Context, all []*objects.Object, ask Ask) (*Report, error) {
	report := &Report{Kubernetes: w.Kubernetes, Source: w.Source}
	requests := make([]*asked, len(all))
	errs := make([]error, len(all))
	labels := map[string]map[string]string{}
	unknown := map[string]bool{}
	for i, o := range all {
		if requests[i], errs[i] = w.request(o, ask); errs[i] != nil {
			continue
		}
		name := requests[i].Namespace
		if name == "" || labels[name] != nil {
			continue
		}
		of, known, err := w.labelsOf(ctx, name)
		if ask.NamespaceLabels != nil {
			of, known, err = ask.NamespaceLabels, true, nil
		}
		if err != nil {
			errs[i] = err
			continue
		}
		labels[name], unknown[name] = map[string]string{}, !known
		if known && of != nil {
			labels[name] = of
		}
	}
	engine, hooks, err := w.engine(labels)
	if err != nil {
		return nil, err
	}
	defer func() { _ = engine.Close() }() // it has no connections
	for i, o := range all {
		t := telling{world: w, hooks: hooks, asked: requests[i]}
		told := Object{Object: o.String(), File: o.File, Line: o.Line}
		if errs[i] == nil {
			t.namespaceUnknown = unknown[requests[i].Namespace]
			errs[i] = t.tell(ctx, engine, &told)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errs[i] != nil {
			told.Error, told.Hints, told.Webhooks = errs[i].Error(), problem.Hints(errs[i]), nil
		}
		if told.Webhooks == nil {
			told.Webhooks = []Webhook{}
		}
		report.Objects = append(report.Objects, told)
	}
	return report, nil
}

// engine makes the chain whose predicates are asked, and the hooks in its order.
func (w *World) engine(namespaces map[string]map[string]string) (*chain.Chain, []hook, error) {
	var hooks []hook
	var in chain.Webhooks
	for _, c := range w.mutating {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			h := &c.Webhooks[i]
			hooks = append(hooks, hook{configuration: c.Name, name: h.Name, mutating: true, static: isStatic(c.Name),
				rules: h.Rules, equivalent: isEquivalent(h.MatchPolicy), ignore: isIgnore(h.FailurePolicy), effects: accepted(&h.SideEffects),
				namespaces: h.NamespaceSelector, objects: h.ObjectSelector, conditions: h.MatchConditions, timeout: ptr.Deref(h.TimeoutSeconds, 10),
				reinvocation: ptr.Deref(h.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)})
		}
		in.Mutating = append(in.Mutating, c)
	}
	for _, c := range w.validating {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			h := &c.Webhooks[i]
			hooks = append(hooks, hook{configuration: c.Name, name: h.Name, static: isStatic(c.Name),
				rules: h.Rules, equivalent: isEquivalent(h.MatchPolicy), ignore: isIgnore(h.FailurePolicy), effects: accepted(&h.SideEffects),
				namespaces: h.NamespaceSelector, objects: h.ObjectSelector, conditions: h.MatchConditions, timeout: ptr.Deref(h.TimeoutSeconds, 10)})
		}
		in.Validating = append(in.Validating, c)
	}
	engine, err := chain.New(in, w.options(namespaces)...)
	if err != nil {
		return nil, nil, w.refused(err)
	}
	return engine, hooks, nil
}

func (w *World) options(namespaces map[string]map[string]string) []chain.Option {
	options := []chain.Option{
		chain.WithNamespaces(namespaces),
		chain.WithDefaulting(func(object runtime.Object) { builtin.Default(object) }),
		chain.WithValidation(func(object, old runtime.Object) field.ErrorList {
			if old != nil {
				return builtin.ValidateUpdate(object, old)
			}
			return builtin.Validate(object)
		}),
		chain.WithCRDs(w.definitions...),
	}
	if w.authorizer != nil {
		options = append(options, chain.WithAuthorizer(w.authorizer))
	}
	for _, d := range w.definitions {
		if convertsByWebhook(d) {
			options = append(options, chain.WithConversion(d.Name, http.NotFoundHandler())) // nobody is called
		}
	}
	return options
}

func convertsByWebhook(d *apiextensionsv1.CustomResourceDefinition) bool {
	return d != nil && d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// refused says what an API server would not have stored.
func (w *World) refused(err error) error {
	return problem.New("an API server would refuse this: %w", err).Hint("admitkit lint FILE...")
}

// accepted returns what a webhook says of its side effects. What only v1beta1 knows is taken out of
// the way of validation; it decides about dry runs.
func accepted(effects **admissionregistrationv1.SideEffectClass) admissionregistrationv1.SideEffectClass {
	said := ptr.Deref(*effects, "")
	if said == admissionregistrationv1.SideEffectClassUnknown || said == admissionregistrationv1.SideEffectClassSome {
		*effects = ptr.To(admissionregistrationv1.SideEffectClassNone)
	}
	return said
}

func isEquivalent(p *admissionregistrationv1.MatchPolicyType) bool {
	return p == nil || *p == admissionregistrationv1.Equivalent
}

func isIgnore(p *admissionregistrationv1.FailurePolicyType) bool {
	return p != nil && *p == admissionregistrationv1.Ignore
}

// ordered puts webhooks into the order of an API server: those of static manifests first.
func ordered(webhooks []*judged) {
	slices.SortStableFunc(webhooks, func(a, b *judged) int {
		return cmp.Or(compare(b.hook.mutating, a.hook.mutating), compare(b.hook.static, a.hook.static))
	})
}

func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
