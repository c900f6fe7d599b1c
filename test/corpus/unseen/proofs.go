// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
)

// The proofs are functions that replay requests. They return the fault that they find, or "" if there is none.

// uidCounter numbers the requests, so that each has its own UID.
var uidCounter atomic.Int64

// An edit changes an object as another party does between two calls.
type edit func(object)

// twice returns what a second call changes in the result of the first.
func twice(t *Trial) string {
	w := t.Instance()
	first := w.Create(t.Sample())
	return differ("a second call changes the object", first, w.Create(first))
}

// twiceAfter is like twice, for the edited sample.
func twiceAfter(change edit) func(*Trial) string {
	return func(t *Trial) string {
		obj := t.Sample()
		change(obj)
		w := t.Instance()
		first := w.Create(t.Canonical(obj))
		return differ("a second call changes the object", first, w.Create(first))
	}
}

// rejectedAfter returns the error that the webhook causes for the edited sample, which is a valid object.
func rejectedAfter(change edit) func(*Trial) string {
	return func(t *Trial) string {
		obj := t.Sample()
		change(obj)
		return t.Instance().Try(t.Canonical(obj)).Problem
	}
}

// againAfter returns how the result after an edit between two calls differs from the result if the edit comes before
// the first call. Use it for edits whose order does not matter to a correct webhook.
func againAfter(change edit) func(*Trial) string {
	return func(t *Trial) string {
		w := t.Instance()
		late := w.Create(t.Sample())
		change(late)
		late = w.Create(t.Canonical(late))
		early := t.Sample()
		change(early)
		early = w.Create(t.Canonical(early))
		if s := differ("with the edit between two calls, the object differs from one edited before", early, late); s != "" {
			return s
		}
		return differ("a further call changes the object", late, w.Create(late))
	}
}

// wrongAfter returns the fault that check finds in the result of a second call, after an edit between the two calls.
func wrongAfter(change edit, check func(object) string) func(*Trial) string {
	return func(t *Trial) string {
		w := t.Instance()
		obj := w.Create(t.Sample())
		change(obj)
		return check(w.Create(t.Canonical(obj)))
	}
}

// wrongFor returns the fault that check finds in the result of one call with the edited sample.
func wrongFor(change edit, check func(object) string) func(*Trial) string {
	return func(t *Trial) string {
		obj := t.Sample()
		change(obj)
		return check(t.Instance().Create(t.Canonical(obj)))
	}
}

// remembers returns how an instance that has handled the sample answers differently from a new instance. Both get the
// edited sample.
func remembers(change edit) func(*Trial) string {
	return func(t *Trial) string {
		second := t.Sample()
		change(second)
		second = t.Canonical(second)
		used := t.Instance()
		used.Create(t.Sample())
		return differ("an instance that has seen another object answers differently",
			t.Instance().Create(second), used.Create(second))
	}
}

// unsteady returns how the results for the sample differ in many calls of one instance.
func unsteady(t *Trial) string { return unsteadyAfter(func(object) {})(t) }

// unsteadyAfter is like unsteady, for the edited sample.
func unsteadyAfter(change edit) func(*Trial) string {
	return func(t *Trial) string {
		obj := t.Sample()
		change(obj)
		obj = t.Canonical(obj)
		w := t.Instance()
		first := w.Create(obj)
		for range 60 {
			if s := differ("the same object gets different results", first, w.Create(obj)); s != "" {
				return s
			}
		}
		return ""
	}
}

// replayed returns how the result differs when the same request, with the same UID, is sent again.
func replayed(t *Trial) string {
	req := t.Request(admissionv1.Create, t.Sample(), nil)
	w := t.Instance()
	first := w.Call(req)
	return differ("the same request gets another answer", first.Object, w.Call(req).Object)
}

// orderMatters returns how the result depends on the order of the webhook and a rival. Each of them is called twice.
func orderMatters(rival http.Handler) func(*Trial) string {
	return func(t *Trial) string {
		w, r := t.Instance(), t.Webhook(rival)
		first, second := t.Sample(), t.Sample()
		for range 2 {
			first = r.Create(w.Create(first))
			second = w.Create(r.Create(second))
		}
		return differ("the result depends on the order of the two webhooks", first, second)
	}
}

// byHand returns the handler of another webhook, which makes the edit in each call.
func byHand(change edit) http.Handler {
	return raw(func(_ *admissionv1.AdmissionRequest, obj object) ([]operation, error) {
		after := clone(obj)
		change(after)
		if string(encode(after)) == string(encode(obj)) {
			return nil, nil
		}
		var ops []operation
		for _, key := range sortedKeys(after) {
			if string(encode(after[key])) != string(encode(obj[key])) {
				ops = append(ops, add(pointer(key), after[key]))
			}
		}
		return ops, nil
	})(hook())
}

// replacedWith returns the fault that check finds in the result of an UPDATE. The stored object is the result of
// creating the sample. The new object is the edited sample, without the changes of the webhook, as after kubectl
// replace.
func replacedWith(change edit, check func(stored, result object) string) func(*Trial) string {
	return func(t *Trial) string {
		w := t.Instance()
		stored := w.Create(t.Sample())
		obj := t.Sample()
		change(obj)
		return check(stored, w.Update(t.Canonical(obj), stored))
	}
}

// updatesOlder returns the fault that check finds in the result of an UPDATE of an object that is older than the
// webhook.
func updatesOlder(change edit, check func(stored, result object) string) func(*Trial) string {
	return func(t *Trial) string {
		stored := t.Sample()
		obj := t.Sample()
		change(obj)
		return check(stored, t.Instance().Update(t.Canonical(obj), stored))
	}
}

// immutable returns a check that an UPDATE does not change the value at a path.
func immutable(path ...any) func(stored, result object) string {
	return func(stored, result object) string {
		return differ(fmt.Sprintf("the immutable field %v changes", path), at(stored, path...), at(result, path...))
	}
}

// kept returns a check that the result still has the value of the stored object at a path.
func kept(path ...any) func(stored, result object) string {
	return func(stored, result object) string {
		return differ(fmt.Sprintf("%v is gone", path), at(stored, path...), at(result, path...))
	}
}

// repeated returns a message about the first value that is in a list twice, or "". what names the value in the message.
func repeated(what string, values []string) string {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return fmt.Sprintf("%s %q is there twice: %s", what, v, strings.Join(values, ", "))
		}
	}
	return ""
}

// allSteps returns a proof that runs several proofs and returns all their faults.
func allSteps(proofs ...func(*Trial) string) func(*Trial) string {
	return func(t *Trial) string {
		var out []string
		for _, p := range proofs {
			if s := p(t); s != "" {
				out = append(out, s)
			}
		}
		return strings.Join(out, "\n")
	}
}
