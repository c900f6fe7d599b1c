// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/yaml"
)

// A prover calls a handler with AdmissionReviews and applies its patches. It honours the operations of the rules, but
// neither the selectors nor the defaults and validation of an API server.
type prover struct {
	t *testing.T
	c hookCase
	h http.Handler
}

// restart replaces the handler by a new instance, as a restart of the server does.
func (p *prover) restart() { p.h = p.c.New() }

// object parses YAML.
func (p *prover) object(text string) map[string]any {
	p.t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		p.t.Fatal(err)
	}
	return object
}

func copyOf(object map[string]any) map[string]any { return runtime.DeepCopyJSON(normal(object)) }

func normal(object map[string]any) map[string]any {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

func (p *prover) create(object map[string]any) (map[string]any, error) {
	return p.call(admissionv1.Create, object, nil)
}

// created creates an object, and fails the test if the webhook denies it.
func (p *prover) created(object map[string]any) map[string]any {
	p.t.Helper()
	out, err := p.create(object)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func (p *prover) update(old, object map[string]any) (map[string]any, error) {
	return p.call(admissionv1.Update, object, old)
}

func (p *prover) updated(old, object map[string]any) map[string]any {
	p.t.Helper()
	out, err := p.update(old, object)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// call sends one request if the rules have the operation, and returns the object with the patch applied.
func (p *prover) call(operation admissionv1.Operation, object, old map[string]any) (map[string]any, error) {
	p.t.Helper()
	asked := false
	for _, rule := range p.c.Webhook.Rules {
		for _, o := range rule.Operations {
			asked = asked || string(o) == string(operation)
		}
	}
	if !asked {
		return copyOf(object), nil
	}
	raw, err := json.Marshal(object)
	if err != nil {
		p.t.Fatal(err)
	}
	rule := p.c.Webhook.Rules[0]
	metadata := nested(object, "metadata")
	request := &admissionv1.AdmissionRequest{
		UID:       uuid.NewUUID(),
		Kind:      metav1.GroupVersionKind{Group: rule.APIGroups[0], Version: rule.APIVersions[0], Kind: str(object["kind"])},
		Resource:  metav1.GroupVersionResource{Group: rule.APIGroups[0], Version: rule.APIVersions[0], Resource: rule.Resources[0]},
		Name:      str(metadata["name"]),
		Namespace: str(metadata["namespace"]),
		Operation: operation,
		Object:    runtime.RawExtension{Raw: raw},
	}
	request.RequestKind, request.RequestResource = &request.Kind, &request.Resource
	if old != nil {
		if request.OldObject.Raw, err = json.Marshal(old); err != nil {
			p.t.Fatal(err)
		}
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		p.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(p.t.Context(), http.MethodPost, "/mutate", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	p.h.ServeHTTP(w, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil {
		p.t.Fatalf("no answer: %d %s", w.Code, w.Body)
	}
	if review.Response.UID != request.UID {
		p.t.Fatal("the answer has another UID")
	}
	if !review.Response.Allowed {
		return nil, fmt.Errorf("denied: %s", review.Response.Result.Message)
	}
	if len(review.Response.Patch) > 0 {
		patch, err := evanphx.DecodePatch(review.Response.Patch)
		if err != nil {
			return nil, err
		}
		if raw, err = patch.Apply(raw); err != nil {
			return nil, fmt.Errorf("the patch does not apply: %w", err)
		}
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	return out, nil
}

func names(list any) []string {
	var out []string
	for _, item := range objects(list) {
		out = append(out, str(item["name"]))
	}
	return out
}

func count(list []string, want string) int {
	n := 0
	for _, s := range list {
		if s == want {
			n++
		}
	}
	return n
}

func set(object map[string]any, value any, path ...string) {
	for _, key := range path[:len(path)-1] {
		next, _ := object[key].(map[string]any)
		if next == nil {
			next = map[string]any{}
			object[key] = next
		}
		object = next
	}
	object[path[len(path)-1]] = value
}

func TestProofs(t *testing.T) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			p := &prover{t: t, c: c, h: c.New()}
			// Each sample is changed.
			for _, sample := range c.Samples {
				object := normal(p.object(sample))
				out := p.created(object)
				if fmt.Sprint(out) == fmt.Sprint(object) {
					t.Error("the sample is not changed")
				}
				if c.broken() {
					continue
				}
				// A correct one has nothing to add to its own result, nor to that of another instance.
				if again := p.created(out); fmt.Sprint(again) != fmt.Sprint(out) {
					t.Errorf("a second call changes %v to %v", out, again)
				}
				p.restart()
				if again := p.updated(out, out); fmt.Sprint(again) != fmt.Sprint(out) {
					t.Errorf("an update without a change changes %v to %v", out, again)
				}
			}
			p.restart()
			if c.Proof == nil {
				t.Fatal("no proof")
			}
			seen := c.Proof(p)
			switch {
			case c.broken() && seen == "":
				t.Error("the fault does not show")
			case c.broken():
				t.Log(seen)
			case seen != "":
				t.Errorf("a correct webhook shows the fault: %s", seen)
			}
		})
	}
}

func TestCorpus(t *testing.T) {
	seen := map[string]bool{}
	broken, correct := 0, 0
	for _, c := range cases {
		if seen[c.Name] || c.Summary == "" || c.Why == "" || len(c.Samples) == 0 {
			t.Errorf("%s: doubled or incomplete", c.Name)
		}
		seen[c.Name] = true
		if c.broken() {
			broken++
		} else {
			correct++
		}
		c.options(t)
	}
	t.Logf("%d broken, %d correct", broken, correct)
}
