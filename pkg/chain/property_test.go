// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain"
)

// A random generates random webhooks and requests, and counts the calls of each webhook.
type random struct {
	*rand.Rand
	mu    sync.Mutex
	calls map[string]int
}

func pick[T any](r *random, from ...T) T { return from[r.IntN(len(from))] }

func (r *random) selector() *metav1.LabelSelector {
	return pick(r, nil, nil, nil, selector("app", "web"), selector("seen", "yes"), selector("env", "prod"))
}

func (r *random) conditions() []admissionregistrationv1.MatchCondition {
	return pick(r, nil, nil, nil, condition("object != null"), condition(`object.spec.nodeName == "n"`),
		condition(`has(object.metadata.labels) && "seen" in object.metadata.labels`), condition(`request.operation != "DELETE"`))
}

func (r *random) rule() admissionregistrationv1.RuleWithOperations {
	rule := podRule(pick(r, []admissionregistrationv1.OperationType{"*"}, []admissionregistrationv1.OperationType{"*"},
		[]admissionregistrationv1.OperationType{"CREATE", "UPDATE"}, []admissionregistrationv1.OperationType{"DELETE", "CONNECT"})...)
	rule.Resources = pick(r, rule.Resources, []string{"pods"}, []string{"*/*"})
	return rule
}

// handler returns a webhook that picks a random answer for each call.
func (r *random) handler(name string) http.Handler {
	label, _, _ := strings.Cut(name, ".")
	answers := []http.Handler{allowing(), allowing(), patching(addLabel(label, "yes")), patching(addLabel("seen", "yes")),
		patching(always(`[{"op":"test","path":"/kind","value":"Pod"}]`))}
	if r.IntN(4) == 0 {
		answers = append(answers, denying("no"), raw(500, "oh"), raw(200, "{"), raw(200, v1(`{"uid":"x","allowed":true}`)),
			patching(always(`[{"op":"remove","path":"/missing"}]`)))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.calls[name]++
		answer := pick(r, answers...)
		r.mu.Unlock()
		answer.ServeHTTP(w, req)
	})
}

func (r *random) webhooks() chain.Webhooks {
	w := chain.Webhooks{Handlers: map[string]http.Handler{}}
	policy := func() *admissionregistrationv1.FailurePolicyType {
		return ptr.To(pick(r, admissionregistrationv1.Fail, admissionregistrationv1.Ignore))
	}
	var m []admissionregistrationv1.MutatingWebhook
	for i := range r.IntN(6) {
		m = append(m, mutatingHook(fmt.Sprintf("m%d.example.com", i), func(h *admissionregistrationv1.MutatingWebhook) {
			h.Rules[0], h.NamespaceSelector, h.ObjectSelector, h.MatchConditions = r.rule(), r.selector(), r.selector(), r.conditions()
			h.FailurePolicy = policy()
			h.ReinvocationPolicy = ptr.To(pick(r, admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy))
			w.Handlers[h.Name] = r.handler(h.Name)
		}))
	}
	var v []admissionregistrationv1.ValidatingWebhook
	for i := range r.IntN(4) {
		v = append(v, validatingHook(fmt.Sprintf("v%d.example.com", i), func(h *admissionregistrationv1.ValidatingWebhook) {
			h.Rules[0], h.NamespaceSelector, h.ObjectSelector, h.MatchConditions = r.rule(), r.selector(), r.selector(), r.conditions()
			h.FailurePolicy = policy()
			w.Handlers[h.Name] = r.handler(h.Name)
		}))
	}
	w.Mutating, w.Validating = mutating(m...), validating(v...)
	return w
}

func (r *random) request() chain.Request {
	return pick(r,
		createPod("web"), createPod("web"),
		chain.Request{Operation: admissionv1.Create, Resource: pods, Object: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-","labels":{}}}`)},
		chain.Request{Operation: admissionv1.Update, Resource: pods, Object: podJSON("web"), OldObject: podJSON("web")},
		chain.Request{Operation: admissionv1.Delete, Resource: pods, OldObject: podJSON("web")},
		chain.Request{Operation: admissionv1.Connect, Resource: pods, SubResource: "attach", Namespace: "default", Name: "web",
			Object: []byte(`{"apiVersion":"v1","kind":"PodAttachOptions"}`)},
	)
}

// TestResultsAgree admits random requests through random webhooks. The parts of each result must be consistent with
// each other, and with the requests that the webhooks received.
func TestResultsAgree(t *testing.T) {
	namespaces := chain.Options{Namespaces: map[string]map[string]string{"default": {"env": "prod"}}}
	for seed := range uint64(120) {
		r := &random{Rand: rand.New(rand.NewPCG(seed, 1)), calls: map[string]int{}}
		c := newChain(t, r.webhooks(), namespaces)
		for range 5 {
			clear(r.calls)
			req := r.request()
			got := admit(t, c, req)
			checkResult(t, got)
			told := map[string]int{}
			for _, call := range got.Calls {
				told[call.Webhook] += call.Attempts
			}
			if !maps.Equal(told, r.calls) {
				t.Errorf("calls told %v, seen %v", told, r.calls)
			}
			if req.Operation != admissionv1.Delete { // the second step of a deletion records nothing new
				checkAnnotations(t, got)
			}
			if got.Admitted() {
				for _, call := range got.Calls {
					if call.Effect == chain.Denied || call.Effect == chain.Failed {
						t.Errorf("admitted, but the outcome of %s is %s", call.Webhook, call.Effect)
					}
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d, %s", seed, req.Operation)
			}
		}
	}
}

// checkAnnotations compares the calls of mutating webhooks with the audit annotations, which the API server's code
// recorded.
func checkAnnotations(t *testing.T, r *chain.Result) {
	t.Helper()
	recorded := map[string]string{}
	for _, a := range r.Annotations {
		recorded[a.Key] = a.Value
	}
	for _, c := range r.Calls {
		if !c.Mutating {
			continue
		}
		key := fmt.Sprintf("mutation.webhook.admission.k8s.io/round_%d_index_%d", c.Round, c.Index)
		want := fmt.Sprintf(`{"configuration":%q,"webhook":%q,"mutated":%t}`, c.Configuration, c.Webhook, c.Mutated)
		if recorded[key] != want {
			t.Errorf("annotation %s is %s, want %s", key, recorded[key], want)
		}
		if open := recorded["failed-open."+key] != ""; open != (c.Effect == chain.FailedOpen) {
			t.Errorf("the outcome of %s is %s, but failed-open %t", c.Webhook, c.Effect, open)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	c := newChain(t, chain.Webhooks{
		Mutating:   mutating(mutatingHook("a.example.com"), mutatingHook("b.example.com")),
		Validating: validating(validatingHook("c.example.com"), validatingHook("d.example.com")),
		Handlers: map[string]http.Handler{
			"a.example.com": patching(addLabel("a", "yes")), "b.example.com": allowing(), "c.example.com": allowing(), "d.example.com": denying("no"),
		},
	})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			req := createPod(fmt.Sprintf("web-%d", i))
			req.Object = []byte(strings.ReplaceAll(string(req.Object), `"default"`, fmt.Sprintf(`"team-%d"`, i)))
			got, err := c.Admit(t.Context(), req)
			if err != nil {
				t.Error(err)
				return
			}
			checkResult(t, got)
			if trace(got) != "a0 b0 c0 d0" {
				t.Errorf("the calls are %s", trace(got))
			}
			for _, call := range got.Calls {
				if !strings.Contains(string(call.Request), fmt.Sprintf(`"name":"web-%d"`, i)) {
					t.Errorf("a call of another request: %s", call.Request)
				}
			}
		})
	}
	wg.Wait()
}
