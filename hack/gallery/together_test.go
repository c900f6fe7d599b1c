// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// orders is the number of random orders in which the controllers run.
const orders = 5

// A member is a controller of a chain. Each controller in a chain gets the object as the previous one has changed it.
type member struct {
	*controller
	*variant
}

// together starts all controllers in one cluster, each with its second configuration if it has one. The third one of
// PodTolerationRestriction would deny the tolerations that DefaultTolerationSeconds adds. Every Namespace has its
// default ServiceAccount. A controller is left out if its hook does only a part of the original, because the original
// also denies requests that the others should get.
func together(t *testing.T, g *generator) (all []member) {
	t.Helper()
	list := slices.DeleteFunc(controllers(), func(c *controller) bool { return c.partly })
	objects := defaultAccounts(g.namespaces)
	for _, c := range list {
		for _, object := range c.classes() {
			if !slices.ContainsFunc(objects, func(o runtime.Object) bool { return sameName(o, object) }) {
				objects = append(objects, object)
			}
		}
	}
	in := newCluster(t, g.namespaces, objects)
	for _, c := range list {
		configurations := orOne(c.configurations)
		all = append(all, member{c, c.variant(t, in, configurations[min(1, len(configurations)-1)])})
	}
	in.sync(t)
	return all
}

// sameName reports whether the objects have the same type, namespace and name.
func sameName(a, b runtime.Object) bool {
	one, err1 := meta.Accessor(a)
	other, err2 := meta.Accessor(b)
	return err1 == nil && err2 == nil && reflect.TypeOf(a) == reflect.TypeOf(b) && one.GetNamespace() == other.GetNamespace() && one.GetName() == other.GetName()
}

// A step decides about a request with the mutating or the validating part of a member.
type step func(m member, r *request, mutating bool) result

// admit sends the request to the mutating parts and then to the validating ones, until one does not allow it. It also
// returns the name of the controller that did not allow the request, or an empty string.
func admit(t *testing.T, chain []member, r *request, by step) (result, string) {
	t.Helper()
	got := result{verdict: allowed, object: r.object}
	for _, mutating := range []bool{true, false} {
		for _, m := range chain {
			next := *r
			next.object = got.object
			got = by(m, next.encoded(t), mutating)
			if got.verdict != allowed {
				return got, m.name
			}
		}
	}
	return got, ""
}

// TestTogether sends requests through all originals and through all hooks, in several orders.
func TestTogether(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 4)), namespaces: namespaces(*seed)}
	chain := together(t, g)
	original := func(m member, r *request, mutating bool) result {
		if got, ok := m.original(t, r, mutating); ok {
			return got
		}
		return result{verdict: allowed, object: r.object}
	}
	hooks := func(m member, r *request, mutating bool) result { return m.ours(t, r, mutating) }
	for n := range orders {
		equal, verdicts := 0, map[string]int{}
		for i := range *cases / orders {
			r := chain[i%len(chain)].generate(g)
			want, by := admit(t, chain, r, original)
			got, ourBy := admit(t, chain, r, hooks)
			for _, m := range chain {
				want, got = m.plainly(want), m.plainly(got)
			}
			verdicts[want.verdict]++
			switch {
			case got.equal(want) && by == ourBy:
				equal++
			case !slices.ContainsFunc(chain, func(m member) bool { return declaredInProcess(m.controller, want, got) }):
				t.Errorf("go test -seed %d: order %d, request %d: %s of %s %s\noriginals (%s) %s\nours (%s) %s\nobject %s",
					*seed, n, i, r.operation, r.resource.Resource, r.subresource, by, want, ourBy, got, text(r.object))
			}
		}
		t.Logf("order %s: %d/%d results equal: %v", strings.Join(namesOf(chain), ", "), equal, *cases/orders, verdicts)
		g.Shuffle(len(chain), func(i, j int) { chain[i], chain[j] = chain[j], chain[i] })
	}
}

// declaredInProcess reports whether the results have a declared difference of the controller.
func declaredInProcess(c *controller, original, ours result) bool {
	return slices.ContainsFunc(c.differences, func(d *difference) bool { return d.is(original, ours) })
}

func namesOf(chain []member) (names []string) {
	for _, m := range chain {
		names = append(names, m.name)
	}
	return names
}

// TestTogetherKeepsTheLaws runs the harness on each mutating hook for Pods, with the other ones as rivals. The samples
// are Pods that the hook changes.
func TestTogetherKeepsTheLaws(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 5)), namespaces: namespaces(*seed)}
	chain := together(t, g)
	subjects := map[string]idempotence.Subject{}
	samples := map[string][]runtime.Object{}
	for _, m := range chain {
		for _, hook := range m.variant.hooks {
			if !hook.Mutating() {
				continue
			}
			subjects[m.name] = idempotence.Handler(registered(t, hook), func() http.Handler { return hook })
			samples[m.name] = m.changedPods(t, g, hook)
		}
	}
	for _, m := range chain {
		if len(samples[m.name]) == 0 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			options := idempotence.Options{Objects: 10, Budget: 10 * time.Minute, Namespaces: g.namespaces, Samples: samples[m.name], Store: idempotence.NoStore}
			verdict := "passes"
			for _, b := range m.broken {
				if b.path == "" {
					t.Logf("%s is not checked: %s", b.law, b.reason)
					options.Without = append(options.Without, b.law)
				} else {
					options.Exceptions = append(options.Exceptions, idempotence.Exception{Path: b.path, Law: b.law, Reason: b.reason})
				}
				verdict = "passes but " + cmp.Or(b.path, string(b.law))
			}
			for name, subject := range subjects {
				if name != m.name && len(samples[name]) > 0 {
					options.Rivals = append(options.Rivals, subject)
				}
			}
			if idempotence.Check(t, subjects[m.name], options); t.Failed() {
				verdict = "fails"
			}
			rowOf(m.controller).harness = verdict
		})
	}
}

// registered returns the webhook with which the hook is registered.
func registered(t *testing.T, hook *webhook.Hook) admissionregistrationv1.MutatingWebhook {
	t.Helper()
	mutating, _, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "gallery", URL: "https://127.0.0.1"}, hook)
	if err != nil {
		t.Fatal(err)
	}
	return mutating.Webhooks[0]
}

// changedPods returns Pods that the API server accepts and the hook changes, at most three.
func (m member) changedPods(t *testing.T, g *generator, hook *webhook.Hook) (pods []runtime.Object) {
	t.Helper()
	for i := 0; i < 500 && len(pods) < 3; i++ {
		r := m.generate(g)
		if r.resource.Resource != "pods" || r.subresource != "" || r.operation != "CREATE" {
			continue
		}
		r.makeValid()
		r = r.encoded(t)
		if got := call(t, hook, r); got.verdict == allowed && text(got.object) != text(r.object) {
			pods = append(pods, withKind(r.object, r.kind))
		}
	}
	return pods
}

func withKind(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object
}
