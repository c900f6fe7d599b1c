// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/traffic"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/rulematch"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// The maximum numbers of samples from recordings. They bound the memory, and the duration of a run.
const (
	maxSamplesOfKind = 5
	maxSampledKinds  = 20
	maxCombinations  = 10_000
)

// addTraffic adds objects of recorded calls to the samples. It uses the calls of the webhooks under test. If there are
// none, it uses calls of other webhooks whose objects match the rules.
func (r *runner) addTraffic(ctx context.Context, g *given, hooks []target) error {
	if len(r.Traffic) == 0 {
		return nil
	}
	own, alike := newChooser(), newChooser()
	calls, others := 0, map[string]int{}
	_, err := traffic.Read(ctx, r.Traffic, r.screen, r.note, func(c *traffic.Call) error {
		calls++
		switch {
		case slices.ContainsFunc(hooks, func(h target) bool { return h.received(c) }):
			own.add(c)
		case slices.ContainsFunc(hooks, func(h target) bool { return h.handles(c) }):
			alike.add(c)
		}
		if len(others) < maxCombinations {
			others[c.Path]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	chosen, whose := own, "of the webhook"
	if own.calls == 0 {
		chosen, whose = alike, "of other webhooks, because none is of this one"
	}
	if chosen.calls == 0 {
		return noneMatches(hooks, calls, others)
	}
	samples := chosen.samples()
	var named []string
	for _, s := range samples {
		named = append(named, s.String())
		g.add(s)
	}
	r.note("%s: %s read, %d %s: %s", objects.Names(r.Traffic...), textutil.Count(calls, "call"), chosen.calls, whose, chosen.rest(len(samples)))
	if len(named) > 0 {
		r.note("samples: %s", strings.Join(named, "; "))
	}
	return r.checkSamples(g)
}

// received reports whether a recorded call was one of the webhook: it has its name or its path.
func (h target) received(c *traffic.Call) bool {
	if c.Type == "validating" {
		return false
	}
	has := h.ClientConfig.URL != nil || h.ClientConfig.Service != nil
	return h.Name != "" && h.Name == c.Webhook || has && c.Path == pathOf(h) ||
		slices.ContainsFunc(h.urls, func(u string) bool { return c.Path == traffic.PathOfURL(u) })
}

// handles reports whether the rules of the webhook match the resource of a recorded call, whatever its operation.
func (h target) handles(c *traffic.Call) bool {
	resource := c.Review.Resource
	return slices.ContainsFunc(h.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
		return rulematch.MatchesAnyScope(rule, rulematch.Request{
			Operation: admissionregistrationv1.OperationType(c.Review.Operation),
			Group:     resource.Group, Version: resource.Version, Resource: resource.Resource, SubResource: c.Review.SubResource,
		})
	})
}

// noneMatches returns the error for recordings without a call of the webhooks and of their kinds.
func noneMatches(hooks []target, calls int, paths map[string]int) error {
	var of []string
	for _, h := range hooks {
		name := h.Name
		if name == "" {
			name = strings.Join(h.urls, ", ")
		}
		of = append(of, name)
	}
	all := slices.Sorted(maps.Keys(paths))
	slices.SortStableFunc(all, func(a, b string) int { return paths[b] - paths[a] })
	var found []string
	for _, path := range all[:min(len(all), 5)] {
		found = append(found, fmt.Sprintf("%s (%d)", textutil.VisibleLine(cmp.Or(path, "no path")), paths[path]))
	}
	return problem.New("--traffic: %s read, and none is of %s or of a kind in its rules: the paths are %s", textutil.Count(calls, "call"),
		textutil.Join(of, "or"), textutil.Join(found, "and")).Hint("--webhook NAME or --url URL, for the webhook that was recorded")
}

// A chooser chooses few and different calls as samples. Calls that are alike for a recorder give one sample. Of each
// kind, those that the webhook changed come first, then the order in the recordings counts.
type chooser struct {
	seed  maphash.Seed
	seen  map[uint64]bool
	kinds map[schema.GroupVersionKind][]sample
	order []schema.GroupVersionKind

	// These count calls. A call that is neither counted nor a sample is one too many.
	calls, alike, without, invalid int
}

// A sample is the object of a recorded call.
type sample struct {
	objects.Object
	operation admissionv1.Operation
	outcome   webhook.Outcome
}

func (s *sample) String() string {
	return fmt.Sprintf("%s (%s, %s, %s)", s.Object.String(), s.Where(), s.operation, s.outcome)
}

func newChooser() *chooser {
	return &chooser{seed: maphash.MakeSeed(), seen: map[uint64]bool{}, kinds: map[schema.GroupVersionKind][]sample{}}
}

// add adds the object of a call to the samples if it differs from the others.
func (c *chooser) add(call *traffic.Call) {
	c.calls++
	if len(call.Review.Object.Raw) == 0 || call.Review.SubResource != "" || call.Review.Operation == admissionv1.Connect {
		c.without++
		return
	}
	combination := call.Combination(c.seed, call.Review)
	if c.seen[combination] {
		c.alike++
		return
	}
	s, err := sampleOf(call)
	if err != nil {
		c.invalid++
		return
	}
	if len(c.seen) < maxCombinations {
		c.seen[combination] = true
	}
	of, known := c.kinds[s.GVK]
	if !known {
		if len(c.kinds) == maxSampledKinds {
			return
		}
		c.order = append(c.order, s.GVK)
	}
	of = append(of, *s)
	slices.SortStableFunc(of, func(a, b sample) int { return cmp.Compare(a.rank(), b.rank()) })
	c.kinds[s.GVK] = of[:min(len(of), maxSamplesOfKind)]
}

// rank is the order in which samples are preferred.
func (s *sample) rank() int {
	switch s.outcome {
	case webhook.Mutated:
		return 0
	case webhook.Allowed:
		return 1
	}
	return 2
}

// samples returns the samples, in the order in which their kinds were first recorded.
func (c *chooser) samples() (all []sample) {
	for _, kind := range c.order {
		all = append(all, c.kinds[kind]...)
	}
	return all
}

// rest describes where the calls are that did not become one of the samples.
func (c *chooser) rest(samples int) string {
	parts := []string{textutil.Count(samples, "sample")}
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(c.alike, "alike")
	add(c.without, "without an object to test, such as deletions and subresources")
	add(c.invalid, "with an object that cannot be decoded")
	add(c.calls-samples-c.alike-c.without-c.invalid, fmt.Sprintf("beyond the limit of %d for each of %d kinds", maxSamplesOfKind, maxSampledKinds))
	return strings.Join(parts, ", ")
}

// sampleOf returns the object of a call. It returns an error for an object that cannot be decoded.
func sampleOf(call *traffic.Call) (*sample, error) {
	raw := call.Review.Object.Raw
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
			Namespace    string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil {
		return nil, err
	}
	s := &sample{operation: call.Review.Operation, outcome: call.Outcome, Object: objects.Object{
		JSON: raw, File: call.File, Line: call.Line, GVK: schema.FromAPIVersionAndKind(head.APIVersion, head.Kind),
		Namespace: head.Metadata.Namespace, Name: cmp.Or(head.Metadata.Name, head.Metadata.GenerateName),
	}}
	if s.GVK != schema.GroupVersionKind(call.Review.Kind) {
		return nil, errors.New("the object is of another kind than the request")
	}
	if typed, err := scheme.Scheme.New(s.GVK); err == nil {
		return s, s.Decode(typed, false)
	}
	return s, nil
}

// add adds a recorded object to the samples. A Namespace is also one of the known namespaces, unless a file has it.
func (g *given) add(s sample) {
	o := &s.Object
	if o.GVK != corev1.SchemeGroupVersion.WithKind("Namespace") {
		g.Others = append(g.Others, o)
		return
	}
	var value corev1.Namespace
	known := slices.ContainsFunc(g.Namespaces, func(n objects.Decoded[corev1.Namespace]) bool { return n.Name == o.Name })
	if err := o.Decode(&value, false); err == nil && !known {
		g.Namespaces = append(g.Namespaces, objects.Decoded[corev1.Namespace]{Object: o, Value: &value})
	}
}
