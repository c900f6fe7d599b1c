// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/examples/gallery/sidecarinjection"
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

// together starts the controllers in one cluster, each with its second configuration if it has one. The third one of
// PodTolerationRestriction would deny the tolerations that DefaultTolerationSeconds adds. Every Namespace has its
// default ServiceAccount. A controller is left out if its hook does only a part of the original, because the original
// also denies requests that the others should get.
func together(t *testing.T, g *generator, list []*controller) (all []member) {
	t.Helper()
	list = slices.DeleteFunc(list, func(c *controller) bool { return c.partly })
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

// admit sends the request to the mutating parts and then to the validating ones, until one does not allow it.
func admit(t *testing.T, chain []member, r *request, by step) {
	t.Helper()
	object := r.object
	for _, mutating := range []bool{true, false} {
		for _, m := range chain {
			next := *r
			next.object = object
			got := by(m, next.encoded(t), mutating)
			if got.verdict != allowed {
				return
			}
			object = got.object
		}
	}
}

// TestTogether sends requests through all originals and through all hooks, in several orders. After each step both
// must have the same result, or a declared difference of the controller that decided. The next step gets the object of
// the original.
func TestTogether(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 4)), namespaces: namespaces(*seed)}
	chain := together(t, g, controllers())
	for n := range orders {
		count := &tally{}
		for i := range *cases / orders {
			r := chain[i%len(chain)].generate(g)
			name := fmt.Sprintf("go test -seed %d: order %d, request %d", *seed, n, i)
			admit(t, chain, r, func(m member, r *request, mutating bool) result {
				return compare(t, m.controller, m.variant, r, mutating, name, count)
			})
		}
		t.Logf("order %s: %d/%d results equal; the originals changed %d, denied %d, failed %d",
			strings.Join(namesOf(chain), ", "), count.equal, count.total, count.changed, count.denied, count.failed)
		g.Shuffle(len(chain), func(i, j int) { chain[i], chain[j] = chain[j], chain[i] })
	}
}

func namesOf(chain []member) (names []string) {
	for _, m := range chain {
		names = append(names, m.name)
	}
	return names
}

// TestTogetherKeepsTheLaws runs the harness on each mutating hook, with the other hooks for the same kind as rivals. The
// samples are objects that the hook changes: Pods, or objects of another kind if it changes no Pods.
func TestTogetherKeepsTheLaws(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 5)), namespaces: namespaces(*seed)}
	var all []subject
	for _, m := range together(t, g, slices.Concat(controllers(), withoutOriginals())) {
		for _, hook := range m.variant.hooks {
			if !hook.Mutating() {
				continue
			}
			if samples := m.changedObjects(t, g, hook); len(samples) > 0 {
				all = append(all, subject{m.controller, idempotence.Handler(registered(t, hook), func() http.Handler { return hook }), samples})
				break // the other mutating hooks of a controller have the same handler
			}
		}
	}
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) { s.check(t, all, meshed(g.namespaces)) })
	}
}

// A subject is a mutating hook with objects that it changes. All of them have the same kind.
type subject struct {
	*controller
	webhook idempotence.Subject
	samples []runtime.Object
}

func (s subject) kind() schema.GroupVersionKind {
	return s.samples[0].GetObjectKind().GroupVersionKind()
}

// check runs the harness on the hook, and sets the verdict in the table. With the default seed, a law or path that is
// declared as broken must fail: with other seeds, no sample may show it.
func (s subject) check(t *testing.T, all []subject, namespaces []*corev1.Namespace) {
	options := idempotence.Options{Objects: 10, Budget: 10 * time.Minute, Namespaces: namespaces, Samples: s.samples, Store: idempotence.NoStore}
	for _, other := range all {
		if other.name != s.name && other.kind() == s.kind() {
			options.Rivals = append(options.Rivals, other.webhook)
		}
	}
	var broken []string
	for _, b := range s.broken {
		if b.path == "" {
			if *seed == defaultSeed && !s.breaks(t, b.law, options) {
				t.Errorf("%s is declared as broken, but does not fail: remove it", b.law)
			}
			t.Logf("%s is not checked: %s", b.law, b.reason)
			options.Without = append(options.Without, b.law)
		} else {
			options.Exceptions = append(options.Exceptions, idempotence.Exception{Path: b.path, Law: b.law, Reason: b.reason})
		}
		broken = append(broken, strings.TrimSpace(string(b.law)+" "+b.path))
	}
	report := idempotence.Check(t, s.webhook, options)
	for _, note := range report.Notes {
		if *seed == defaultSeed && note.Code == idempotence.ReasonExceptionUnused {
			t.Errorf("%s", report.Text(note))
		}
	}
	switch {
	case t.Failed():
		rowOf(s.controller).harness = "fails"
	case len(broken) > 0:
		rowOf(s.controller).harness = "passes but " + strings.Join(broken, ", ")
	default:
		rowOf(s.controller).harness = "passes"
	}
}

// breaks reports whether a run that checks only this law finds that it fails.
func (s subject) breaks(t *testing.T, law idempotence.Law, options idempotence.Options) bool {
	t.Helper()
	options.Without = slices.DeleteFunc(slices.Clone(idempotence.Laws), func(l idempotence.Law) bool { return l == law })
	report, err := idempotence.Run(t.Context(), s.webhook, options)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(report.Laws, func(l idempotence.LawResult) bool { return l.Law == law && l.Verdict == idempotence.Fails })
}

// meshed returns copies of the Namespaces with the label that the first hook of SidecarInjection selects.
func meshed(namespaces []*corev1.Namespace) (list []*corev1.Namespace) {
	for _, ns := range namespaces {
		ns = ns.DeepCopy()
		ns.Labels = map[string]string{sidecarinjection.RevisionLabel: "default"}
		list = append(list, ns)
	}
	return list
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

// changedObjects returns objects that the API server accepts and the hook changes, at most three. They are Pods, or if
// the hook changes no Pods, objects of another kind.
func (m member) changedObjects(t *testing.T, g *generator, hook *webhook.Hook) []runtime.Object {
	t.Helper()
	byKind := map[string][]runtime.Object{}
	for i := 0; i < 500 && len(byKind["Pod"]) < 3; i++ {
		r := m.generate(g)
		kind := r.kind.Kind
		if r.subresource != "" || r.operation != "CREATE" || len(byKind[kind]) == 3 || !matches(t, hook, r) {
			continue
		}
		r.makeValid()
		r = r.encoded(t)
		if got := call(t, hook, r); got.verdict == allowed && text(got.object) != text(r.object) {
			byKind[kind] = append(byKind[kind], withKind(r.object, r.kind))
		}
	}
	if pods := byKind["Pod"]; len(pods) > 0 {
		return pods
	}
	if kinds := slices.Sorted(maps.Keys(byKind)); len(kinds) > 0 {
		return byKind[kinds[0]]
	}
	return nil
}

func withKind(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object
}
