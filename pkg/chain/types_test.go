// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/chain"
)

// gadget and gadgetV2 are the types of an aggregated API server.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Size              int `json:"size"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	c := *g
	c.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &c
}

type gadgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Length            int `json:"length"`
}

func (g *gadgetV2) DeepCopyObject() runtime.Object {
	c := *g
	c.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &c
}

func addGadgets(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "gadgets.example.com", Version: "v1", Kind: "Gadget"}, &gadget{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "gadgets.example.com", Version: "v2", Kind: "Gadget"}, &gadgetV2{})
	s.AddTypeDefaultingFunc(&gadget{}, func(obj any) {
		if g := obj.(*gadget); g.Size == 0 {
			g.Size = 7
		}
	})
	for _, add := range []error{
		s.AddConversionFunc((*gadget)(nil), (*gadgetV2)(nil), func(in, out any, _ conversion.Scope) error {
			g := in.(*gadget)
			*out.(*gadgetV2) = gadgetV2{ObjectMeta: *g.ObjectMeta.DeepCopy(), Length: g.Size}
			return nil
		}),
		s.AddConversionFunc((*gadgetV2)(nil), (*gadget)(nil), func(in, out any, _ conversion.Scope) error {
			g := in.(*gadgetV2)
			*out.(*gadget) = gadget{ObjectMeta: *g.ObjectMeta.DeepCopy(), Size: g.Length}
			return nil
		}),
		s.AddConversionFunc((*gadget)(nil), (*gadget)(nil), func(in, out any, _ conversion.Scope) error {
			*out.(*gadget) = *in.(*gadget).DeepCopyObject().(*gadget)
			return nil
		}),
	} {
		if add != nil {
			return add
		}
	}
	return nil
}

func TestTypes(t *testing.T) {
	everything := func(version string) func(*admissionregistrationv1.MutatingWebhook) {
		return func(h *admissionregistrationv1.MutatingWebhook) {
			h.Rules[0].Rule = admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{version}, Resources: []string{"gadgets"}}
		}
	}
	c := newChain(t, chain.Webhooks{
		Mutating: mutating(mutatingHook("a.example.com", everything("v1")), mutatingHook("b.example.com", everything("v2")), mutatingHook("c.example.com", everything("v1"))),
		Handlers: map[string]http.Handler{
			"a.example.com": patching(addLabel("a", "yes")),
			"b.example.com": patching(always(`[{"op":"replace","path":"/length","value":9}]`)),
			"c.example.com": allowing(),
		},
	}, chain.Options{Types: []func(*runtime.Scheme) error{addGadgets}})
	got := admit(t, c, chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Group: "gadgets.example.com", Version: "v1", Resource: "gadgets"},
		Object: []byte(`{"apiVersion":"gadgets.example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"team"},"odd":1}`)})
	if got.Rejection != nil {
		t.Fatal(got.Rejection.Message)
	}
	checkResult(t, got)
	for i, want := range []string{`"size":7`, `"length":7`, `"size":9`} {
		if !strings.Contains(string(got.Calls[i].Request), want) {
			t.Errorf("call %d is for %s", i, got.Calls[i].Request)
		}
	}
	if !strings.Contains(string(got.Object), `"labels":{"a":"yes"}`) || !strings.Contains(string(got.Object), `"size":9`) || len(got.Warnings) != 1 || len(got.Limits) != 0 {
		t.Errorf("the object is %s, the warnings %q, the limits %q", got.Object, got.Warnings, got.Limits)
	}
}
