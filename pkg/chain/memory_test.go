// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admitkit/admitkit/pkg/chain"
)

func twoHooks(t *testing.T, options ...chain.Options) *chain.Chain {
	special := func(h *admissionregistrationv1.MutatingWebhook) { h.NamespaceSelector = selector("team", "special") }
	return newChain(t, chain.Webhooks{
		Mutating:   mutating(mutatingHook("a.example.com"), mutatingHook("b.example.com", special)),
		Validating: validating(validatingHook("v.example.com")),
		Handlers: map[string]http.Handler{
			"a.example.com": patching(addLabel("a", "yes")), "b.example.com": allowing(), "v.example.com": denying("no"),
		},
	}, options...)
}

// TestResultsAreNotShared checks that results belong to the caller. Later requests must not change an earlier result,
// and a caller that changes one must not affect later ones.
func TestResultsAreNotShared(t *testing.T) {
	c := twoHooks(t)
	text := func(r *chain.Result) string {
		for i := range r.Calls {
			r.Calls[i].Duration = 0
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	req := createPod("web")
	given := string(req.Object)
	first := admit(t, c, req)
	before := text(first)
	for i := range 50 {
		r := admit(t, c, createPod(fmt.Sprintf("another-%d", i)))
		for _, b := range append([][]byte{r.Object}, r.Calls[0].Request, r.Calls[0].Response, r.Calls[0].Patch) {
			for i := range b {
				b[i] = 'x'
			}
		}
		r.Rejection.Message, r.Webhooks[0].Detail, r.Annotations[0].Value = "x", "x", "x"
	}
	if after := text(first); after != before {
		t.Errorf("the first result was\n%s\nand is now\n%s", before, after)
	}
	if string(req.Object) != given {
		t.Errorf("the object of the request is now %s", req.Object)
	}
	for i := range req.Object {
		req.Object[i] = 'x'
	}
	if after := text(first); after != before {
		t.Error("the result changes with the request")
	}
	again := admit(t, c, createPod("web"))
	if again.Rejection.Message != first.Rejection.Message || string(again.Calls[0].Patch) != string(first.Calls[0].Patch) {
		t.Errorf("the same request gives %s, but gave %s before", text(again), before)
	}
}

// refusing is a plugin that returns the same error value in every call.
type refusing struct{ err *apierrors.StatusError }

func (refusing) Handles(admission.Operation) bool { return true }

func (p refusing) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return p.err
}

func TestRejectionIsNotShared(t *testing.T) {
	err := apierrors.NewForbidden(admissionregistrationv1.Resource("x"), "x", nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "kept"}}
	c := twoHooks(t, chain.Options{Plugins: []chain.Plugin{{Name: "Refusing", Admission: refusing{err}}}})
	admit(t, c, createPod("web")).Rejection.Details.Causes[0].Message = "changed"
	if got := admit(t, c, createPod("web")).Rejection.Details.Causes[0].Message; got != "kept" {
		t.Errorf("the cause is %q", got)
	}
}

// TestMemoryIsBounded checks that an engine keeps no data of completed requests, such as the names of their namespaces.
func TestMemoryIsBounded(t *testing.T) {
	c := twoHooks(t)
	n := 0
	some := func() {
		for range 400 {
			n++
			name := fmt.Sprintf("namespace-%d", n)
			pod := createPod(fmt.Sprintf("web-%d", n))
			pod.Object = []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":%q},"spec":{"containers":[{"name":"c","image":"i"}]}}`, name))
			admit(t, c, pod)
			admit(t, c, chain.Request{Operation: admissionv1.Delete, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"},
				OldObject: []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name))})
		}
	}
	some()
	before := inUse()
	for range 3 {
		some()
	}
	if grown := int64(inUse()) - int64(before); grown > 1<<18 {
		t.Errorf("1200 more requests retain %d bytes", grown)
	}
}

func inUse() uint64 {
	var m runtime.MemStats
	for range 3 { // the second collection frees the contents of pools
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
