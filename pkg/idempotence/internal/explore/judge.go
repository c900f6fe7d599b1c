// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Judge decides whether a finding is reported as a violation or as advice. A violation that hardly matters in a cluster
// becomes advice. Judge returns nil if f is nil, or if the API server would reject the object anyway.
func (r *Run) Judge(f *laws.Finding) *laws.Finding {
	if f == nil {
		return nil
	}
	degenerate := r.isDegenerate(f.Case.Object)
	if f.Mode == laws.Invalid && (degenerate || r.isDegenerate(lastSent(f))) {
		return nil // the user of such a useless object sees the error of the API server
	}
	f.Advice = f.Advice || degenerate
	if (f.Case.Law == laws.L4b || f.Case.Law == laws.L11) && !f.Advice && f.Mode != laws.ServerError && r.actsOnce() {
		f.Advice, f.OnCopies = true, true
	}
	return f
}

// lastSent returns the object of the last request of a finding, or nil.
func lastSent(f *laws.Finding) any {
	if len(f.Outcomes) == 0 {
		return nil
	}
	calls := f.Outcomes[len(f.Outcomes)-1].Calls
	if len(calls) == 0 {
		return nil
	}
	doc, err := tree.Decode(calls[0].Exchange.Object)
	if err != nil {
		return nil
	}
	return doc
}

// actsOnce reports whether the API server calls the webhooks only once for an object: they handle CREATE but not
// UPDATE, and have the reinvocationPolicy Never.
func (r *Run) actsOnce() bool {
	if r.Operation != admissionv1.Create || r.Handles(admissionv1.Update) {
		return false
	}
	for _, w := range r.Webhooks {
		if !w.NeverReinvoked() {
			return false
		}
	}
	return len(r.Webhooks) > 0
}

// isDegenerate reports whether a custom resource is one that users do not create: its spec, or a template that all
// samples have, is absent or empty, or its selector does not match its template. Such an object is valid only because
// the schema requires little.
func (r *Run) isDegenerate(doc any) bool {
	return doc != nil && r.Kind.GoType == nil && (lacks(doc, r.inputs.hollow()) || selectsOthers(doc))
}

// selectsOthers reports whether the selector of a workload is invalid, or does not match the labels of its template. The
// API server rejects such built-in workloads, and controllers cannot use such custom resources.
func selectsOthers(doc any) bool {
	spec := tree.Path{{Name: "spec"}}
	value, _ := tree.Get(doc, spec.Member("selector"))
	fields := asObject(value)
	if fields["matchLabels"] == nil && fields["matchExpressions"] == nil || !tree.Has(doc, spec.Member("template")) {
		return false
	}
	var selector metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) != nil {
		return true
	}
	selects, err := metav1.LabelSelectorAsSelector(&selector)
	value, _ = tree.Get(doc, spec.Member("template").Member("metadata").Member("labels"))
	of := labels.Set{}
	for key, label := range asObject(value) {
		of[key], _ = label.(string)
	}
	return err != nil || !selects.Matches(of)
}

func asObject(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}

// lacks reports whether a document has no value, or an empty one, at any of the paths.
func lacks(doc any, paths []tree.Path) bool {
	for _, p := range paths {
		value, ok := tree.Get(doc, p)
		if parent, had := tree.Get(doc, p[:len(p)-1]); len(p) > 1 && !had && parent == nil {
			continue // the parent is optional, or another path of the list
		}
		fields, isMap := value.(map[string]any)
		list, isList := value.([]any)
		if !ok || value == nil || isMap && len(fields) == 0 || isList && len(list) == 0 {
			return true
		}
	}
	return false
}

// hollow returns the paths of the spec, the templates and their containers, as far as all samples have them. Without
// these parts, an object is degenerate.
func (in *Inputs) hollow() []tree.Path {
	if in.parts != nil {
		return in.parts
	}
	if len(in.samples) == 0 {
		return nil
	}
	in.parts = []tree.Path{}
	var walk func(p tree.Path, value any)
	walk = func(p tree.Path, value any) {
		fields, _ := value.(map[string]any)
		for name, inner := range fields {
			members, isMap := inner.(map[string]any)
			if !isMap || len(members) == 0 {
				continue
			}
			at := p.Member(name)
			if len(at) == 1 && name == "spec" || strings.HasSuffix(strings.ToLower(name), "template") && in.allHave(at) {
				in.parts = append(in.parts, at)
			}
			if containers := at.Member("containers"); name == "spec" && len(at) > 1 && in.allHave(containers) {
				in.parts = append(in.parts, at, containers)
			}
			walk(at, inner)
		}
	}
	walk(nil, in.samples[0])
	return in.parts
}

// allHave reports whether all samples have a value at a path.
func (in *Inputs) allHave(p tree.Path) bool {
	for _, s := range in.samples {
		if !tree.Has(s, p) {
			return false
		}
	}
	return true
}

// mostFilled is the maximum number of invalid objects that are sent to learn which fields the webhook fills.
const mostFilled = 40

// valid is like Valid. But an object is also valid if the webhook fills the fields that it lacks. sample is set for an
// object of the user.
func (r *Run) valid(doc any, sample bool) (*objects.Object, bool) {
	x, ok := r.Valid(doc)
	if ok || r.filled >= mostFilled || r.Over() {
		return x, ok
	}
	r.filled++
	return r.ValidOnceFilled(r.Fresh(), doc, sample)
}
