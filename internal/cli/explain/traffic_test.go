// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/cli/traffic"
	"github.com/admitkit/admitkit/pkg/chain"
	"github.com/admitkit/admitkit/pkg/record"
)

// TestTrafficAgrees records the calls of random webhooks, changes the webhooks, and requires the verdicts of the chain,
// which really calls them, for each request.
func TestTrafficAgrees(t *testing.T) {
	total := TrafficWebhook{}
	for seed := range uint64(8) {
		g := newGenerator(seed + 1)
		old := g.trafficWebhooks()
		now := g.changed(old)
		dir := t.TempDir()
		recorder, err := record.New(record.Options{Dir: dir, MaxBytesPerSecond: -1})
		if err != nil {
			t.Fatal(err)
		}
		requests := make([]chain.Request, 30)
		for i := range requests {
			requests[i] = g.trafficRequest(i)
		}
		oldCalled := called(t, old, requests, recorder)
		nowCalled := called(t, now, requests, nil)
		if err := recorder.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{"old.yaml": encodedWebhooks(t, old), "new.yaml": encodedWebhooks(t, now), "namespaces.yaml": trafficNamespaces}
		for name, text := range files {
			files[name] = filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(files[name], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, against := range [][]string{{files["old.yaml"]}, nil} {
			o := &Options{Traffic: []string{dir}, Configurations: []string{files["new.yaml"]}, Against: against, Files: []string{files["namespaces.yaml"]}}
			report, err := RunTraffic(t.Context(), o, &screen.Screen{Out: io.Discard, Err: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			want := expected(t, dir, oldCalled, nowCalled, against != nil)
			for _, w := range report.Webhooks {
				got := fmt.Sprintf("%d %d %d %d %d %d", w.Recorded, w.Kept, w.Lost, w.Gained, w.Rejected, w.Unknown)
				e := want[w.Name]
				if e == nil {
					e = &TrafficWebhook{}
				}
				if w := fmt.Sprintf("%d %d %d %d 0 0", e.Recorded, e.Kept, e.Lost, e.Gained); got != w {
					var text bytes.Buffer
					_ = report.Text(&text, screen.Painter{}) // only for the message
					t.Fatalf("seed %d, against %q, %s: recorded, kept, lost, gained, rejected, unknown are %s, want %s\n%s", seed, against, e.Name, got, w, &text)
				}
				if against != nil {
					total.Recorded, total.Kept, total.Lost, total.Gained = total.Recorded+w.Recorded, total.Kept+w.Kept, total.Lost+w.Lost, total.Gained+w.Gained
				}
			}
		}
	}
	t.Logf("%+v", total)
	if total.Kept < 100 || total.Lost < 50 || total.Gained < 50 {
		t.Errorf("the webhooks differ too little: %+v", total)
	}
}

// TestTrafficNamespaces checks that the judge knows the given namespaces from the beginning: each restart takes long.
func TestTrafficNamespaces(t *testing.T) {
	j, err := newJudge(&Facts{namespaces: map[string]map[string]string{"shop": {"team": "web"}, "blog": nil}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	engine := j.engine
	for _, name := range []string{"shop", "blog"} {
		if err := j.namespace(t.Context(), name); err != nil || j.engine != engine || j.unknown[name] {
			t.Errorf("%s: %v, restarted: %t, unknown: %t", name, err, j.engine != engine, j.unknown[name])
		}
	}
	if err := j.namespace(t.Context(), "other"); err != nil || j.engine == engine || !j.unknown["other"] {
		t.Errorf("another namespace: %v", err)
	}
}

const trafficNamespaces = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: web}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: blog, labels: {team: press}}}
`

// trafficWebhooks returns random webhooks, each with a path of its own.
func (g generator) trafficWebhooks() (in chain.Webhooks) {
	m := &admissionregistrationv1.MutatingWebhookConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"}, ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	v := &admissionregistrationv1.ValidatingWebhookConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"}, ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	for i := range 3 {
		m.Webhooks = append(m.Webhooks, g.trafficWebhook(fmt.Sprintf("m%d.example.com", i)))
		w := g.trafficWebhook(fmt.Sprintf("v%d.example.com", i))
		v.Webhooks = append(v.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: w.Name, Rules: w.Rules, ClientConfig: w.ClientConfig, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions})
	}
	in.Mutating, in.Validating = append(in.Mutating, m), append(in.Validating, v)
	return in
}

func (g generator) trafficWebhook(name string) admissionregistrationv1.MutatingWebhook {
	h := admissionregistrationv1.MutatingWebhook{Name: name, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://hooks.example.com/" + name)}}
	g.match(&h)
	return h
}

// match sets the fields that decide for which requests a webhook is called.
func (g generator) match(h *admissionregistrationv1.MutatingWebhook) {
	h.Rules = []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{pick(g, admissionregistrationv1.OperationAll, admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update)},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{pick(g, "*", "v1")},
			Resources: []string{pick(g, "*", "*/*", "pods", "deployments", "pods/*")}},
	}}
	h.NamespaceSelector = pick(g, nil, nil, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}})
	h.ObjectSelector = pick(g, nil, nil, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}})
	h.MatchPolicy = ptr.To(pick(g, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent))
	h.MatchConditions = nil
	if expression := pick(g, "", "", `request.userInfo.username == "jane"`, `request.operation != "DELETE"`, `object == null || has(object.metadata.labels)`,
		`!request.dryRun`, `!has(request.subResource)`, `object != null && has(object.spec) && has(object.spec.containers) && object.spec.containers[0].image == "example.com/a:1"`); expression != "" {
		h.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: expression}}
	}
}

// changed returns copies of the webhooks, most of which are called for other requests. One is new, and one is missing.
func (g generator) changed(old chain.Webhooks) (in chain.Webhooks) {
	m, v := old.Mutating[0].DeepCopy(), old.Validating[0].DeepCopy()
	for i := range m.Webhooks {
		if g.IntN(4) > 0 {
			g.match(&m.Webhooks[i])
		}
	}
	for i := range v.Webhooks {
		if w := (admissionregistrationv1.MutatingWebhook{}); g.IntN(4) > 0 {
			g.match(&w)
			v.Webhooks[i].Rules, v.Webhooks[i].NamespaceSelector, v.Webhooks[i].ObjectSelector, v.Webhooks[i].MatchConditions, v.Webhooks[i].MatchPolicy = w.Rules, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions, w.MatchPolicy
		}
	}
	m.Webhooks[2] = g.trafficWebhook("new.example.com")
	in.Mutating, in.Validating = append(in.Mutating, m), append(in.Validating, v)
	return in
}

// trafficRequest returns a random request. The name of its object has the number.
func (g generator) trafficRequest(number int) chain.Request {
	r := chain.Request{Name: fmt.Sprint("r-", number), Namespace: pick(g, "shop", "blog"), DryRun: g.IntN(4) == 0,
		User: authenticationv1.UserInfo{Username: pick(g, "jane", "joe"), Groups: []string{"system:authenticated"}}}
	object := func(kind, version string, spec any) []byte {
		metadata := map[string]any{"name": r.Name, "namespace": r.Namespace}
		if g.IntN(3) > 0 {
			metadata["labels"] = map[string]any{"app": pick(g, "a", "b")}
		}
		return encode(map[string]any{"kind": kind, "apiVersion": version, "metadata": metadata, "spec": spec})
	}
	var one func() []byte
	switch g.IntN(4) {
	case 0:
		r.Resource = metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
		one = func() []byte {
			return object("Deployment", "apps/v1", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}, "template": template})
		}
	default:
		r.Resource = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
		spec := map[string]any{"containers": []any{map[string]any{"name": "a", "image": pick(g, "example.com/a:1", "example.com/a:2")}}, "nodeName": "n"}
		one = func() []byte { return object("Pod", "v1", spec) }
	}
	switch r.Operation = pick(g, admissionv1.Create, admissionv1.Update, admissionv1.Delete); {
	case r.Operation == admissionv1.Create && r.Resource.Resource == "pods" && g.IntN(3) == 0:
		r.SubResource = "eviction"
		r.Object = encode(map[string]any{"kind": "Eviction", "apiVersion": "policy/v1", "metadata": map[string]any{"name": r.Name, "namespace": r.Namespace}})
	case r.Operation == admissionv1.Create:
		r.Object = one()
	case r.Operation == admissionv1.Update:
		r.Object, r.OldObject = one(), one()
	default:
		r.OldObject = one()
	}
	return r
}

// called sends requests through a chain, and returns by name of request and webhook whether it was called. A recorder
// records the calls.
func called(t *testing.T, in chain.Webhooks, requests []chain.Request, recorder *record.Recorder) map[string]map[string]bool {
	t.Helper()
	in.Handlers = map[string]http.Handler{}
	add := func(name string) {
		var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review admissionv1.AdmissionReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
				return
			}
			review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
			review.Request = nil
			if err := json.NewEncoder(w).Encode(review); err != nil {
				t.Error(err)
			}
		})
		if recorder != nil {
			h = recorder.Handler(h)
		}
		in.Handlers[name] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = "/" + name // the chain calls a handler without the path of its webhook
			h.ServeHTTP(w, r)
		})
	}
	for _, w := range in.Mutating[0].Webhooks {
		add(w.Name)
	}
	for _, w := range in.Validating[0].Webhooks {
		add(w.Name)
	}
	c, err := chain.New(in, chain.Options{Namespaces: map[string]map[string]string{"shop": {"team": "web"}, "blog": {"team": "press"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // it has no connections to close
	all := map[string]map[string]bool{}
	for _, r := range requests {
		result, err := c.Admit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if result.Rejection != nil {
			t.Fatalf("%s %s: %s", r.Operation, r.Object, result.Rejection.Message)
		}
		all[r.Name] = map[string]bool{}
		for _, w := range result.Webhooks {
			all[r.Name][w.Webhook] = w.Called
		}
	}
	return all
}

// expected counts the recorded calls by what the chain did with their requests before and now.
func expected(t *testing.T, dir string, before, now map[string]map[string]bool, against bool) map[string]*TrafficWebhook {
	t.Helper()
	all := map[string]*TrafficWebhook{}
	for _, called := range []map[string]bool{before["r-0"], now["r-0"]} {
		for name := range called {
			all[name] = &TrafficWebhook{Name: name}
		}
	}
	var calls []*traffic.Call
	_, err := traffic.Read(t.Context(), []string{dir}, &screen.Screen{Err: io.Discard}, t.Logf, func(c *traffic.Call) error {
		calls = append(calls, c)
		all[strings.TrimPrefix(c.Path, "/")].Recorded++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		for name, w := range all {
			was, is, mine := before[c.Review.Name][name], now[c.Review.Name][name], c.Path == "/"+name
			if !against {
				was = mine
			}
			switch {
			case mine && is:
				w.Kept++
			case mine:
				w.Lost++
			case is && !was && (against || w.Recorded == 0):
				w.Gained++
			}
		}
	}
	return all
}

func encodedWebhooks(t *testing.T, in chain.Webhooks) string {
	t.Helper()
	var text string
	for _, c := range []any{in.Mutating[0], in.Validating[0]} {
		out, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		text += "---\n" + string(out)
	}
	return text
}
