// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// given has the objects of all files on the command line.
type given struct {
	objects.Sets
	// registrations has the webhook configurations, from their own files or from the objects of -f.
	registrations *objects.Sets
}

// read reads and checks all files.
func (r *runner) read(ctx context.Context) (*given, error) {
	of := func(files []string) (*objects.Sets, error) {
		all, err := objects.Read(ctx, files, r.screen.In, r.note)
		switch {
		case err != nil:
			return nil, err
		case len(files) > 0 && len(all) == 0:
			return nil, problem.New("%s: no Kubernetes objects found", objects.Names(files...)).Hint("add a Kubernetes object to a file, or remove the option that names it")
		}
		sets, err := objects.Sort(all)
		if err != nil {
			return nil, problem.New("%w", err)
		}
		return sets, nil
	}
	files, err := of(r.Files)
	if err != nil {
		return nil, err
	}
	g := &given{Sets: *files, registrations: files}
	if registered := slices.Concat(r.Configurations, r.Chain); len(registered) > 0 {
		if g.registrations, err = of(registered); err != nil {
			return nil, err
		}
	}
	for _, c := range g.registrations.Mutating {
		for _, unknown := range c.Unknown {
			r.note("%s: %s: %s: the API server drops it", c.Where(), c.Object, unknown)
		}
	}
	if err := r.refused(g); err != nil {
		return nil, err
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	return g, r.checkSamples(g)
}

// checkSamples checks the samples of built-in kinds. It prints a note for each sample that the API server would reject,
// and for each field that it would drop. It returns an error if a sample cannot be decoded.
func (r *runner) checkSamples(g *given) error {
	for _, o := range g.Others {
		typed, err := scheme.Scheme.New(o.GVK)
		if err != nil {
			continue // a custom resource
		}
		if err := o.Decode(typed, false); err != nil {
			return problem.New("%w", err)
		}
		if strict, err := scheme.Scheme.New(o.GVK); err == nil {
			if unknown := o.Decode(strict, true); unknown != nil {
				r.note("%s: the API server drops it", unknown)
			}
		}
		k8svalidation.Default(typed)
		if wrong := k8svalidation.Validate(typed); len(wrong) > 0 {
			r.note("%s: %s: the API server rejects this sample, so it is not sent to the webhook: %s", o.Where(), o, wrong[0])
		}
	}
	return nil
}

// locate replaces the notes of a report about samples that the API server rejects by notes with their files and lines.
// About samples of built-in kinds, checkSamples printed a note before the run.
func (r *runner) locate(g *given, report *idempotence.Report) {
	report.Notes = slices.DeleteFunc(report.Notes, func(n idempotence.Reason) bool {
		if n.Code != idempotence.ReasonSampleRefused {
			return false
		}
		number := 0
		for _, o := range g.candidates() {
			if kindName(o) != n.Kind {
				continue
			}
			if number++; number < n.Count {
				continue
			}
			if !scheme.Scheme.Recognizes(o.GVK) {
				r.note("%s: %s: the API server rejects this sample, so it is not sent to the webhook: %s", o.Where(), o, n.Detail)
			}
			return true
		}
		return false
	})
}

// check returns an error for a kind in a group of Kubernetes that does not have this kind. The name is usually a typo.
func (g *given) check() error {
	for _, o := range g.Others {
		if scheme.Scheme.IsGroupRegistered(o.GVK.Group) && !scheme.Scheme.Recognizes(o.GVK) && !g.defines(o) {
			return problem.New("%s: Kubernetes has no kind %s in %s", o.Where(), o.GVK.Kind, o.GVK.GroupVersion())
		}
	}
	return nil
}

func (g *given) defines(o *objects.Object) bool {
	return slices.ContainsFunc(g.CRDs, func(d objects.Decoded[apiextensionsv1.CustomResourceDefinition]) bool {
		return d.Value.Spec.Group == o.GVK.Group && d.Value.Spec.Names.Kind == o.GVK.Kind
	})
}

// samplesOf returns the samples of the run. Namespaces are included: they are samples for webhooks that handle
// namespaces.
func (g *given) samplesOf() ([]runtime.Object, error) {
	var all []runtime.Object
	for _, o := range g.candidates() {
		u, err := o.Unstructured()
		if err != nil {
			return nil, problem.New("%w", err)
		}
		all = append(all, u)
	}
	return all, nil
}

// candidates returns all objects that can be samples.
func (g *given) candidates() []*objects.Object {
	all := slices.Clone(g.Others)
	for _, n := range g.Namespaces {
		all = append(all, n.Object)
	}
	return all
}

// unused prints a note with the kinds of -f that were not tested, because no rule of the webhook matches them. If there
// are no samples at all, it prints a note about that.
func (r *runner) unused(g *given, report *idempotence.Report) {
	if r.Replay != "" {
		return
	}
	var others []string
	for _, o := range g.Others {
		if kind := kindName(o); !slices.Contains(report.Kinds, kind) && !slices.Contains(others, kind) {
			others = append(others, kind)
		}
	}
	switch {
	case len(others) > 0:
		r.note("not tested, because no rule of the webhook matches them: %s", strings.Join(others, ", "))
	case len(g.Others) == 0 && len(g.CRDs) == 0:
		r.note("there are no samples, so all objects are generated and the webhook may change none of them; add samples with -f")
	}
}

func kindName(o *objects.Object) string { return o.GVK.GroupVersion().String() + " " + o.GVK.Kind }
