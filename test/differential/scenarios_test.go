// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admitkit/admitkit/pkg/chain"
)

// A scenario creates one Pod while a few webhooks are registered. It has the result that both engines must give. A
// plugin of the API server sets the pull policy of all containers before the webhooks, and again if a webhook changed
// the Pod.
type scenario struct {
	name  string
	hooks []step
	// calls are the calls in the form <webhook><round>.<index>, followed by a sign: + for a patch
	// that changed the object, = for one that did not, - for no patch, ! for a denial, ? for an
	// ignored failure, and x for a failure that was not ignored.
	calls string
	// audit are the annotations of the audit event: m<round>.<index> with + or - for the mutation
	// record of a call, p for a patch, and f for an ignored failure.
	audit string
	// rejected is the beginning of the message to the client.
	rejected string
}

// A step is a mutating webhook of a scenario. Each of its calls runs the next entry of the script. Further calls change
// nothing.
type step struct {
	name      string
	script    []string
	never     bool // has the reinvocationPolicy Never
	ignore    bool
	selector  map[string]string
	condition string
}

func hook(name string, script ...string) step { return step{name: name, script: script} }

func (s step) once() step { s.never = true; return s }

// scripts maps entries of step.script to JSON Patches. %s is the name of the step, and %d the number of the call.
var scripts = map[string]string{
	"annotate": `[{"op":"add","path":"/metadata/annotations/%s","value":"%d"}]`,
	"inject":   `[{"op":"add","path":"/spec/containers/-","value":{"name":"injected-%s-%d","image":"example.com/injected:1","imagePullPolicy":"Never"}}]`,
	"noop":     `[{"op":"test","path":"/kind","value":"Pod"}]`,
	"mark":     `[{"op":"add","path":"/metadata/labels/marked","value":"yes"}]`,
	"unmark":   `[{"op":"remove","path":"/metadata/labels/fresh"}]`,
}

var scenarios = []scenario{
	{name: "KEP-492 scenario 1", hooks: []step{hook("a")}, calls: "a0.0-", audit: "m0.0-"},
	{name: "KEP-492 scenario 2", hooks: []step{hook("a", "annotate")}, calls: "a0.0+", audit: "m0.0+ p0.0"},
	{name: "KEP-492 scenario 3", hooks: []step{hook("a", "inject")}, calls: "a0.0+ a1.0-", audit: "m0.0+ m1.0- p0.0"},
	{
		name: "KEP-492 scenario 3, with an answer to the plugin's change", hooks: []step{hook("a", "inject", "annotate")},
		calls: "a0.0+ a1.0+", audit: "m0.0+ m1.0+ p0.0 p1.0",
	},
	{
		name: "KEP-492 scenario 4", hooks: []step{hook("a", "annotate"), hook("b", "annotate")},
		calls: "a0.0+ b0.1+ a1.0-", audit: "m0.0+ m0.1+ m1.0- p0.0 p0.1",
	},
	{
		name: "KEP-492 scenario 5", hooks: []step{hook("a", "annotate", "annotate"), hook("b", "annotate")},
		calls: "a0.0+ b0.1+ a1.0+ b1.1-", audit: "m0.0+ m0.1+ m1.0+ m1.1- p0.0 p0.1 p1.0",
	},
	{
		name: "the change of a webhook with Never", hooks: []step{hook("a"), hook("b", "annotate").once()},
		calls: "a0.0- b0.1+ a1.0-", audit: "m0.0- m0.1+ m1.0- p0.1",
	},
	{
		name: "a webhook after the change", hooks: []step{hook("a"), hook("b", "annotate"), hook("c")},
		calls: "a0.0- b0.1+ c0.2- a1.0-", audit: "m0.0- m0.1+ m0.2- m1.0- p0.1",
	},
	{
		name: "a webhook with Never is called once", hooks: []step{hook("a", "annotate").once(), hook("b", "annotate")},
		calls: "a0.0+ b0.1+", audit: "m0.0+ m0.1+ p0.0 p0.1",
	},
	{
		name: "a change in the second round", hooks: []step{hook("a"), hook("b", "annotate", "annotate"), hook("c"), hook("d", "annotate")},
		calls: "a0.0- b0.1+ c0.2- d0.3+ a1.0- b1.1+ c1.2- d1.3-",
		audit: "m0.0- m0.1+ m0.2- m0.3+ m1.0- m1.1+ m1.2- m1.3- p0.1 p0.3 p1.1",
	},
	{
		name: "there is no third round", hooks: []step{hook("a", "annotate", "annotate", "annotate"), hook("b", "annotate", "annotate", "annotate")},
		calls: "a0.0+ b0.1+ a1.0+ b1.1+", audit: "m0.0+ m0.1+ m1.0+ m1.1+ p0.0 p0.1 p1.0 p1.1",
	},
	{
		name: "both again when the plugin answers the first", hooks: []step{hook("a", "inject"), hook("b")},
		calls: "a0.0+ b0.1- a1.0- b1.1-", audit: "m0.0+ m0.1- m1.0- m1.1- p0.0",
	},
	{
		name: "the first patch without effect is a change", hooks: []step{hook("a"), hook("b", "noop"), hook("c", "noop")},
		calls: "a0.0- b0.1+ c0.2= a1.0-", audit: "m0.0- m0.1+ m0.2- m1.0- p0.1 p0.2",
	},
	{
		name: "no first call in the second round",
		hooks: []step{
			{name: "a", selector: map[string]string{"marked": "yes"}}, hook("b", "mark"),
			{name: "c", selector: map[string]string{"marked": "yes"}}, hook("d", "annotate").once(),
		},
		calls: "b0.1+ c0.2- d0.3+ b1.1- c1.2-", audit: "m0.1+ m0.2- m0.3+ m1.1- m1.2- p0.1 p0.3",
	},
	{
		name: "no second call of a webhook that matches no more", hooks: []step{{name: "a", selector: map[string]string{"fresh": "yes"}}, hook("b", "unmark")},
		calls: "a0.0- b0.1+", audit: "m0.0- m0.1+ p0.1",
	},
	{
		name: "a call that failed is made again", hooks: []step{{name: "a", script: []string{"fail", "annotate"}, ignore: true}, hook("b", "annotate")},
		calls: "a0.0? b0.1+ a1.0+ b1.1-", audit: "f0.0 m0.0- m0.1+ m1.0+ m1.1- p0.1 p1.0",
	},
	{
		name: "a denial in the second round", hooks: []step{hook("a", "annotate", "deny"), hook("b", "annotate")},
		calls: "a0.0+ b0.1+ a1.0!", audit: "m0.0+ m0.1+ m1.0- p0.0 p0.1",
		rejected: `admission webhook "a.example.com" denied the request: no`,
	},
	{
		name: "a failure in the second round", hooks: []step{hook("a", "annotate", "fail"), hook("b", "annotate")},
		calls: "a0.0+ b0.1+ a1.0x", audit: "m0.0+ m0.1+ m1.0- p0.0 p0.1",
		rejected: `Internal error occurred: failed calling webhook "a.example.com": `,
	},
	{
		name: "a condition that cannot be evaluated in the second round rejects, even of a webhook that is not called again",
		hooks: []step{
			{name: "a", never: true, condition: `object.metadata.labels.fresh == "yes"`}, hook("b", "unmark"),
		},
		calls: "a0.0- b0.1+", audit: "m0.0- m0.1+ p0.1",
		rejected: `pods "scenario" is forbidden: `,
	},
}

// TestScenarios runs each scenario with both engines.
func TestScenarios(t *testing.T) {
	quiet()
	server, auditLog := startServer(t, "AlwaysPullImages")
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			options := builtIns()
			options.Plugins = []chain.Plugin{{Name: "AlwaysPullImages", Admission: alwaysPull{}}}
			process, err := chain.New(s.webhooks(), options)
			if err != nil {
				t.Fatal(err)
			}
			s.check(t, "in process", process)
			onServer, err := chain.Connect(server.Config, s.webhooks(), chain.ConnectOptions{AuditLog: auditLog})
			if err != nil {
				t.Fatal(err)
			}
			s.check(t, "server", onServer)
		})
	}
}

func (s scenario) check(t *testing.T, name string, engine chain.Engine) {
	t.Helper()
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	got, err := engine.Admit(t.Context(), chain.Request{
		Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "scenarios", DryRun: true,
		Object: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"scenario","labels":{"fresh":"yes"},"annotations":{"by":"scenarios"}},` +
			`"spec":{"containers":[{"name":"app","image":"example.com/app:1","imagePullPolicy":"IfNotPresent"}]}}`),
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if calls := callsOf(got); calls != s.calls {
		t.Errorf("%s: the calls are %s\nwant %s", name, calls, s.calls)
	}
	if audit := auditOf(t, got); audit != s.audit {
		t.Errorf("%s: the audit annotations are %s\nwant %s", name, audit, s.audit)
	}
	switch {
	case got.Admitted() != (s.rejected == ""):
		t.Errorf("%s: the rejection is %v, want %q", name, got.Rejection, s.rejected)
	case !got.Admitted() && !strings.HasPrefix(got.Rejection.Message, s.rejected):
		t.Errorf("%s: rejected with %s\nwant %s", name, got.Rejection.Message, s.rejected)
	}
}

func callsOf(r *chain.Result) string {
	var calls []string
	for _, c := range r.Calls {
		calls = append(calls, fmt.Sprintf("%s%d.%d%s", strings.TrimSuffix(c.Webhook, ".example.com"), c.Round, c.Index, signOf(c)))
	}
	return strings.Join(calls, " ")
}

func signOf(c chain.Call) string {
	switch {
	case c.Effect == chain.Denied:
		return "!"
	case c.Effect == chain.FailedOpen:
		return "?"
	case c.Effect == chain.Failed:
		return "x"
	case c.Mutated && len(c.Patch) > 0:
		return "+"
	case c.Mutated:
		return "changed without a patch"
	case len(c.Patch) > 0:
		return "="
	}
	return "-"
}

// auditOf returns the audit annotations in sorted form. Each key has the index of a webhook. auditOf checks
// that the value names that webhook and its configuration.
func auditOf(t *testing.T, r *chain.Result) string {
	t.Helper()
	webhooks := map[string]string{}
	for _, v := range r.Webhooks {
		webhooks[fmt.Sprint(v.Index)] = v.Configuration + "/" + v.Webhook
	}
	var all []string
	for _, a := range r.Annotations {
		kind, place, ok := strings.Cut(a.Key, "webhook.admission.k8s.io/round_")
		if !ok {
			continue // from another part of the API server
		}
		round, index, _ := strings.Cut(place, "_index_")
		var value struct {
			Configuration, Webhook string
			Mutated                bool
		}
		if json.Unmarshal([]byte(a.Value), &value) != nil { // the record of a failure is only a name
			value.Configuration, value.Webhook, _ = strings.Cut(webhooks[index], "/")
			value.Webhook = cmp.Or(map[bool]string{true: value.Webhook}[a.Value == value.Webhook], "another: "+a.Value)
		}
		if is := value.Configuration + "/" + value.Webhook; is != webhooks[index] {
			t.Errorf("%s is for %s, not for %s", a.Key, is, webhooks[index])
		}
		note := kind[:1] + round + "." + index
		if kind == "mutation." {
			note += map[bool]string{true: "+", false: "-"}[value.Mutated]
		}
		all = append(all, note)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (s scenario) webhooks() chain.Webhooks {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "scenario"}}
	w := chain.Webhooks{Mutating: []*admissionregistrationv1.MutatingWebhookConfiguration{c}, Handlers: map[string]http.Handler{}}
	for _, st := range s.hooks {
		h := admissionregistrationv1.MutatingWebhook{
			Name: st.name + ".example.com", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}
		if st.never {
			h.ReinvocationPolicy = new(admissionregistrationv1.NeverReinvocationPolicy)
		}
		if st.ignore {
			h.FailurePolicy = new(admissionregistrationv1.Ignore)
		}
		if st.selector != nil {
			h.ObjectSelector = &metav1.LabelSelector{MatchLabels: st.selector}
		}
		if st.condition != "" {
			h.MatchConditions = condition(st.condition)
		}
		c.Webhooks = append(c.Webhooks, h)
		w.Handlers[h.Name] = st.handler()
	}
	return w
}

func (s step) handler() http.Handler {
	var calls atomic.Int32
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		n, what := int(calls.Add(1)), ""
		if n <= len(s.script) {
			what = s.script[n-1]
		}
		response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		switch operations := scripts[what]; {
		case what == "fail":
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		case what == "deny":
			deny(&metav1.Status{Message: "no"})("", nil, response)
		case strings.Contains(operations, "%"):
			patch(fmt.Sprintf(operations, s.name, n))("", nil, response)
		case operations != "":
			patch(operations)("", nil, response)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response}); err != nil {
			panic(err)
		}
	})
}

// alwaysPull implements the plugin AlwaysPullImages of the API server.
type alwaysPull struct{}

func (alwaysPull) Handles(op admission.Operation) bool { return op == admission.Create }

func (alwaysPull) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod, ok := a.GetObject().(*corev1.Pod); ok {
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
		}
	}
	return nil
}
