// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain"
)

// inTree is an in-tree plugin that changes a label in its first calls, and nothing in later ones. changes is the number
// of calls that change the label.
type inTree struct {
	changes int32
	calls   atomic.Int32
}

func (*inTree) Handles(admission.Operation) bool { return true }

func (p *inTree) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	n := p.calls.Add(1)
	m, err := meta.Accessor(a.GetObject())
	if err != nil || n > p.changes {
		return err
	}
	labels := m.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["in-tree"] = fmt.Sprint(n)
	m.SetLabels(labels)
	return nil
}

// scripted is a webhook whose script has one character for each call: "+" if the call changes the object, and "-"
// if it does not.
type scripted struct {
	script string
	calls  atomic.Int32
}

func (s *scripted) handler(name string) http.Handler {
	return patching(func(*admissionv1.AdmissionRequest) string {
		n := int(s.calls.Add(1))
		if n > len(s.script) || s.script[n-1] != '+' {
			return ""
		}
		return fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/%s","value":"%d"}]`, name, n)
	})
}

func TestReinvocation(t *testing.T) {
	// Each hook is a name and a script. A "!" in front of the script means reinvocationPolicy Never, otherwise it is
	// IfNeeded.
	for _, test := range []struct {
		name    string
		inTree  int32 // the number of changes by the in-tree plugin; negative means no plugin
		hooks   []string
		calls   string
		inTrees int32
	}{
		{"KEP-492 scenario 1", 1, []string{"a -"}, "a0", 1},
		{"KEP-492 scenario 2", 1, []string{"a +"}, "a0", 2},
		{"KEP-492 scenario 3", 2, []string{"a ++"}, "a0 a1", 2},
		{"KEP-492 scenario 4", 1, []string{"a +-", "b +"}, "a0 b0 a1", 2},
		{"KEP-492 scenario 5", 1, []string{"a ++", "b +-"}, "a0 b0 a1 b1", 2},
		{"a Never hook's change", -1, []string{"a --", "b !+"}, "a0 b0 a1", 0},
		{"a hook after the change", -1, []string{"a --", "b +", "c -"}, "a0 b0 c0 a1", 0},
		{"a Never hook is not called again", -1, []string{"a !+", "b +"}, "a0 b0", 0},
		{"all again", -1, []string{"a --", "b +-", "c --", "d +-"}, "a0 b0 c0 d0 a1 b1 c1", 0},
		{"a change in round 1", -1, []string{"a --", "b ++", "c --", "d +-"}, "a0 b0 c0 d0 a1 b1 c1 d1", 0},
		{"there is no round 2", -1, []string{"a ++++", "b ++++"}, "a0 b0 a1 b1", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := chain.Webhooks{Handlers: map[string]http.Handler{}}
			var hooks []admissionregistrationv1.MutatingWebhook
			for _, h := range test.hooks {
				name, script, _ := strings.Cut(h, " ")
				policy := admissionregistrationv1.IfNeededReinvocationPolicy
				if strings.HasPrefix(script, "!") {
					policy, script = admissionregistrationv1.NeverReinvocationPolicy, script[1:]
				}
				full := name + ".example.com"
				hooks = append(hooks, mutatingHook(full, func(h *admissionregistrationv1.MutatingWebhook) { h.ReinvocationPolicy = ptr.To(policy) }))
				w.Handlers[full] = (&scripted{script: script}).handler(name)
			}
			w.Mutating = mutating(hooks...)
			var options chain.Options
			p := &inTree{changes: test.inTree}
			if test.inTree >= 0 {
				options.Plugins = []chain.Plugin{{Name: "InTree", Admission: p}}
			}
			got := admit(t, newChain(t, w, options), createPod("web"))
			if got.Rejection != nil {
				t.Fatal(got.Rejection.Message)
			}
			if calls := trace(got); calls != test.calls {
				t.Errorf("the calls are %s, want %s", calls, test.calls)
			}
			if n := p.calls.Load(); n != test.inTrees {
				t.Errorf("the in-tree plugin is called %d times, want %d", n, test.inTrees)
			}
			checkResult(t, got)
		})
	}
}

// trace returns the first letter of the webhook and the round of each call: "a0 b0 a1".
func trace(r *chain.Result) string {
	var calls []string
	for _, c := range r.Calls {
		calls = append(calls, fmt.Sprintf("%s%d", c.Webhook[:1], c.Round))
	}
	return strings.Join(calls, " ")
}

// checkResult checks what must be true of every result, such as that Calls and Webhooks agree.
func checkResult(t *testing.T, r *chain.Result) {
	t.Helper()
	called := map[string]bool{}
	for _, c := range r.Calls {
		called[c.Configuration+"/"+c.Webhook] = true
	}
	for _, v := range r.Webhooks {
		if v.Called != called[v.Configuration+"/"+v.Webhook] {
			t.Errorf("verdict %+v, but the calls are %v", v, called)
		}
		if v.Called != (v.Reason == chain.Matches) {
			t.Errorf("verdict %+v contradicts itself", v)
		}
	}
	for _, c := range r.Calls {
		if c.Effect == "" || (c.Error != "") != (c.Effect != chain.Allowed) {
			t.Errorf("call %s of %s: outcome %q, error %q", c.Webhook, c.Request, c.Effect, c.Error)
		}
	}
}

// TestNoOpPatchIsAChangeOfBuiltInTypes has webhooks return patches without effect. Such a patch still counts as a
// change, because the time in managedFields loses its fraction of a second.
func TestNoOpPatchIsAChangeOfBuiltInTypes(t *testing.T) {
	ifNeeded := func(h *admissionregistrationv1.MutatingWebhook) {
		h.ReinvocationPolicy = ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy)
	}
	w := chain.Webhooks{
		Mutating: mutating(mutatingHook("a.example.com", ifNeeded), mutatingHook("b.example.com"), mutatingHook("c.example.com")),
		Handlers: map[string]http.Handler{
			"a.example.com": allowing(),
			"b.example.com": patching(always(`[{"op":"test","path":"/kind","value":"Pod"}]`)),
			"c.example.com": patching(always(`[{"op":"test","path":"/kind","value":"Pod"}]`)),
		},
	}
	got := admit(t, newChain(t, w), createPod("web"))
	if calls := trace(got); calls != "a0 b0 c0 a1" {
		t.Errorf("the calls are %s", calls)
	}
	for i, want := range []bool{false, true, false, false} {
		if got.Calls[i].Mutated != want {
			t.Errorf("call %d: mutated %t, want %t", i, got.Calls[i].Mutated, want)
		}
	}
}
