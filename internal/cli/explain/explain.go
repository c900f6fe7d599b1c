// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/chain"
)

// Explain returns a report with the explanation for each object. An object that cannot be explained has its error in
// the report.
func (w *Facts) Explain(ctx context.Context, all []*objects.Object, ask Ask) (*Report, error) {
	report := &Report{Kubernetes: w.Kubernetes, Source: w.Source, PoliciesKnown: w.policies.broken == nil && (w.policies.known || !w.policies.live() && len(w.policies.Mutating)+len(w.policies.Validating) > 0)}
	all = w.withSubresource(ctx, all, ask)
	requests := make([]*knownRequest, len(all))
	errs := make([]error, len(all))
	labels := map[string]map[string]string{}
	unknown := map[string]bool{}
	for i, o := range all {
		if requests[i], errs[i] = w.request(ctx, o, ask); errs[i] != nil {
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
	w.policies.dropOlder(w)
	if err := w.policies.readParams(ctx, append(slices.Sorted(maps.Keys(labels)), ""), cmp.Or(ask.Namespace, metav1.NamespaceDefault), w.namespacedParam); err != nil {
		return nil, err
	}
	engine, hooks, err := w.engine(labels, w.policies.usable())
	if err != nil {
		return nil, err
	}
	defer func() { _ = engine.Close() }() // engine has no connections to close
	for i, o := range all {
		t := explainer{facts: w, hooks: hooks, req: requests[i]}
		result := Object{Object: o.String(), File: o.File, Line: o.Line}
		if errs[i] == nil {
			t.namespaceUnknown = unknown[requests[i].Namespace]
			errs[i] = t.explain(ctx, engine, &result)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errs[i] != nil {
			result.Error, result.Hints, result.Webhooks = errs[i].Error(), problem.Hints(errs[i]), nil
		}
		if result.Webhooks == nil {
			result.Webhooks = []Webhook{}
		}
		report.Objects = append(report.Objects, result)
	}
	return report, nil
}

// withSubresource removes the objects whose resource lacks the subresource, unless all lack it.
func (w *Facts) withSubresource(ctx context.Context, all []*objects.Object, ask Ask) []*objects.Object {
	if ask.SubResource == "" {
		return all
	}
	var have []*objects.Object
	for _, o := range all {
		if _, err := w.request(ctx, o, ask); !errors.As(err, new(noSubresource)) {
			have = append(have, o)
		}
	}
	if len(have) == 0 {
		return all
	}
	return have
}

// engine returns a [chain.Chain] that evaluates the predicates, and the hooks in the order of this chain. If
// [chain.New] rejects the configurations, the error names those that an API server would reject.
func (w *Facts) engine(namespaces map[string]map[string]string, policies chain.Policies) (*chain.Chain, []hook, error) {
	var err error
	for _, apart := range []bool{false, true} {
		hooks, in := w.hooks(apart)
		var engine *chain.Chain
		if engine, err = chain.New(in, w.options(namespaces, policies)); err == nil {
			return engine, hooks, nil
		}
	}
	return nil, nil, w.refused(err)
}

// refused returns an error that names the files with configurations that an API server would reject.
func (w *Facts) refused(err error) error {
	var wheres, files []string
	for _, c := range chain.ConfigurationErrors(err) {
		if where := w.origins[c.Kind+" "+c.Name]; where != "" && !slices.Contains(wheres, where) {
			file, _, _ := strings.Cut(where, ":")
			wheres, files = append(wheres, where), append(files, file)
		}
	}
	slices.Sort(wheres)
	slices.Sort(files)
	if len(wheres) == 0 {
		return problem.New("an API server would reject this configuration: %w", err)
	}
	return problem.New("%s: an API server would reject this configuration: %w", strings.Join(wheres, ", "), err).Hint("admitkit lint %s", strings.Join(slices.Compact(files), " "))
}

func (w *Facts) options(namespaces map[string]map[string]string, policies chain.Policies) chain.Options {
	options := chain.Options{
		Namespaces: namespaces, Policies: policies, CRDs: w.definitions, Authorizer: w.authorizer, Conversions: map[string]http.Handler{},
		Default: func(object runtime.Object) { k8svalidation.Default(object) },
		Validate: func(object, old runtime.Object) field.ErrorList {
			if old != nil {
				return k8svalidation.ValidateUpdate(object, old)
			}
			return k8svalidation.Validate(object)
		},
	}
	for _, d := range w.definitions {
		if convertsByWebhook(d) {
			options.Conversions[d.Name] = http.NotFoundHandler() // it is never called
		}
	}
	return options
}

func convertsByWebhook(d *apiextensionsv1.CustomResourceDefinition) bool {
	return d != nil && d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// ordered sorts webhooks into the order in which the API server calls them, with those of static manifests first.
func ordered(webhooks []*explainedWebhook) {
	slices.SortStableFunc(webhooks, func(a, b *explainedWebhook) int {
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
