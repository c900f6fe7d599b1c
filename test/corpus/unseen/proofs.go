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

// uidCounter numbers the requests.
var uidCounter atomic.Int64

// An edit changes an object as another party does between two calls.
type edit func(object)

// twice shows that a second call changes the result of the first.
func twice(t *Trial) string {
	w := t.Instance()
	first := w.Create(t.Sample())
	return differ("a second call changes the object", first, w.Create(first))
}

// twiceAfter is twice for the edited sample.
func twiceAfter(change edit) func(*Trial) string {
	return func(t *Trial) string {
		obj := t.Sample()
		change(obj)
		w := t.Instance()
		first := w.Create(t.Canonical(obj))
		return differ("a second call changes the object", first, w.Create(first))
	}
}

// rejectedAfter shows that the edited sample, which is a legal object, gets an error instead of an answer.
func rejectedAfter(change edit) func(*Trial) string {
	return func(t *Trial) string {
		obj := t.Sample()
		change(obj)
		return t.Instance().Try(t.Canonical(obj)).Problem
	}
}

// againAfter shows that after an edit between two calls, the result is not the one that it would be if the edit
// had come before the first call. Use it for edits that commute with a correct webhook.
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

// wrongAfter shows that check objects to the result of a call after an edit between two calls.
func wrongAfter(change edit, check func(object) string) func(*Trial) string {
	return func(t *Trial) string {
		w := t.Instance()
		obj := w.Create(t.Sample())
		change(obj)
		return check(w.Create(t.Canonical(obj)))
	}
}

// wrongFor shows that check objects to the result of one call on the edited sample.
func wrongFor(change edit, check func(object) string) func(*Trial) string {
	return func(t *Trial) string {
		obj := t.Sample()
		change(obj)
		return check(t.Instance().Create(t.Canonical(obj)))
	}
}

// remembers shows that an instance that has seen the sample answers a second object in another way than a new
// instance does. The edit turns the sample into the second object.
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

// unsteady shows that the same request gets different results from new instances.
func unsteady(t *Trial) string { return unsteadyAfter(func(object) {})(t) }

// unsteadyAfter is unsteady for the edited sample.
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

// replayed shows that the same request gets no patch, or another, when it is sent again.
func replayed(t *Trial) string {
	req := t.Request(admissionv1.Create, t.Sample(), nil)
	w := t.Instance()
	first := w.Call(req)
	return differ("the same request gets another answer", first.Object, w.Call(req).Object)
}

// orderMatters shows that the order of the webhook and a rival decides the result, after two rounds each.
func orderMatters(rival http.Handler) func(*Trial) string {
	return func(t *Trial) string {
		w, r := t.Instance(), t.Webhook(rival)
		first, second := t.Sample(), t.Sample()
		for range 2 {
			first = r.Create(w.Create(first))
			second = w.Create(r.Create(second))
		}
		return differ("the order of the two webhooks decides", first, second)
	}
}

// byHand returns another webhook that makes an edit.
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

// replacedWith shows that check objects to the result of an UPDATE. The stored object is the result of creating the
// sample, and the edit makes the new object from a copy of the original sample, as a client does that replaces.
func replacedWith(change edit, check func(stored, result object) string) func(*Trial) string {
	return func(t *Trial) string {
		w := t.Instance()
		stored := w.Create(t.Sample())
		obj := t.Sample()
		change(obj)
		return check(stored, w.Update(t.Canonical(obj), stored))
	}
}

// updatesOlder shows that check objects to the result of an UPDATE of an object that is older than the webhook.
func updatesOlder(change edit, check func(stored, result object) string) func(*Trial) string {
	return func(t *Trial) string {
		stored := t.Sample()
		obj := t.Sample()
		change(obj)
		return check(stored, t.Instance().Update(t.Canonical(obj), stored))
	}
}

// immutable returns a check that the values at a path are equal.
func immutable(path ...any) func(stored, result object) string {
	return func(stored, result object) string {
		return differ(fmt.Sprintf("the immutable field %v changes", path), at(stored, path...), at(result, path...))
	}
}

// kept returns a check that the result has at the path what the stored object has.
func kept(path ...any) func(stored, result object) string {
	return func(stored, result object) string {
		return differ(fmt.Sprintf("%v is gone", path), at(stored, path...), at(result, path...))
	}
}

// repeated returns the first element that is in a list twice.
func repeated(what string, values []string) string {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return fmt.Sprintf("%s %q is there twice: %s", what, v, strings.Join(values, ", "))
		}
	}
	return ""
}

// allSteps returns the reports of several proofs.
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
