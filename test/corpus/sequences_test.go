// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
)

// immutable checks two updates of a Pod that existed before the webhook. The webhook must not change the specification
// of the Pod in either update, and must not patch the second one.
func immutable(c Case) error {
	old := parse(plain)
	if c.Webhook.Rules[0].Resources[0] == "deployments" {
		return nil // a template may change
	}
	after := clone(old)
	after["metadata"].(object)["annotations"] = object{"changed": "yes"}
	if len(c.Webhook.Rules[0].Operations) < 2 {
		return nil
	}
	h := c.New()
	for range 2 {
		r, err := do(h, call{operation: "UPDATE", object: after, old: old})
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(r.object["spec"], old["spec"]) {
			return fmt.Errorf("the update changes the specification: %s", r.patch)
		}
		if after["metadata"].(object)["annotations"].(object)["round"] != nil && len(r.patch) > 0 {
			return fmt.Errorf("the second update changes the object again: %s", r.patch)
		}
		after = clone(r.object)
		after["metadata"].(object)["annotations"].(object)["round"] = "two"
	}
	return nil
}

// deletion checks that an UPDATE can remove the last finalizers.
func deletion(c Case) error {
	if len(c.Webhook.Rules[0].Operations) < 2 {
		return nil
	}
	old := parse(plain)
	meta := old["metadata"].(object)
	meta["deletionTimestamp"], meta["finalizers"] = "2026-01-01T00:00:00Z", []any{"example.com/other", ownFinalizer}
	after := clone(old)
	delete(after["metadata"].(object), "finalizers")
	r, err := do(c.New(), call{operation: "UPDATE", object: after, old: old})
	if err != nil {
		return err
	}
	if r.object["metadata"].(object)["finalizers"] != nil {
		return fmt.Errorf("a finalizer is left, so the deletion never ends: %s", r.patch)
	}
	return nil
}

// dryRun checks that a dry run makes no external writes, and that a normal call makes some.
func dryRun(c Case) error {
	if c.Observe == nil {
		return nil
	}
	h := c.New()
	before := c.Observe()
	if _, err := do(h, call{object: parse(plain), dryRun: true}); err != nil {
		return err
	}
	if after := c.Observe(); !reflect.DeepEqual(before, after) {
		return fmt.Errorf("a dry run changed the external state from %v to %v", before, after)
	}
	if _, err := do(h, call{object: parse(plain)}); err != nil {
		return err
	}
	if reflect.DeepEqual(before, c.Observe()) {
		return errors.New("a normal call writes nothing outside")
	}
	return nil
}

// dryRunAnswer checks that a dry run has the same result as the next normal call.
func dryRunAnswer(c Case) error {
	h := c.New()
	dry, err := do(h, call{object: parse(plain), dryRun: true})
	if err != nil {
		return err
	}
	wet, err := do(h, call{object: parse(plain)})
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(dry.object, wet.object) {
		return fmt.Errorf("the patch of a dry run is %s, of a normal call %s", dry.patch, wet.patch)
	}
	return nil
}

// dryRunLeaves checks that a normal call has the same result with and without an earlier dry run.
func dryRunLeaves(c Case) error {
	want, err := do(c.New(), call{object: parse(plain)})
	if err != nil {
		return err
	}
	h := c.New()
	if _, err := do(h, call{object: parse(plain), dryRun: true}); err != nil {
		return err
	}
	got, err := do(h, call{object: parse(plain)})
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(got.object, want.object) {
		return fmt.Errorf("the patch after a dry run is %s, without one %s", got.patch, want.patch)
	}
	return nil
}

// bothVersions checks that the result is the same in every review version of the registration.
func bothVersions(c Case) error {
	return each(c, func(c Case, doc object) error {
		var ends []object
		for _, version := range c.Webhook.AdmissionReviewVersions {
			h, doc := c.New(), doc
			for range 2 { // a call with a patch, and one without
				r, err := do(h, call{version: version, object: doc})
				if err != nil {
					return fmt.Errorf("%s: %w", version, err)
				}
				doc = r.object
			}
			ends = append(ends, doc)
		}
		if !reflect.DeepEqual(ends[0], ends[len(ends)-1]) {
			return difference(fmt.Sprintf("the first version results in %s, the last in %s", text(ends[0]), text(ends[len(ends)-1])))
		}
		return nil
	})
}

// versionsInTurn checks that one instance accepts all review versions of the registration in turn.
func versionsInTurn(c Case) error {
	return each(c, func(c Case, doc object) error {
		h := c.New()
		for _, version := range c.Webhook.AdmissionReviewVersions {
			if _, err := do(h, call{version: version, object: doc}); err != nil {
				return fmt.Errorf("%s, after other versions: %w", version, err)
			}
		}
		return nil
	})
}

// alternating checks laws L11 and L12: with each rival, the object settles within four rounds, and the
// result does not depend on which of the two is called first.
func alternating(c Case) error {
	for _, rival := range c.Rivals {
		ends := []object{}
		for _, order := range [][]http.Handler{{c.New(), rival()}, {rival(), c.New()}} {
			end, err := settled(order, parse(plain))
			if err != nil {
				return err
			}
			ends = append(ends, end)
		}
		if !same(ends[0], ends[1]) {
			return difference(fmt.Sprintf("the webhook first results in %s, the rival first in %s", text(ends[0]), text(ends[1])))
		}
	}
	return nil
}

// settled calls the handlers in turn, for four rounds. It returns an error if the last two rounds change
// the object.
func settled(order []http.Handler, doc object) (object, error) {
	for round := range 4 {
		for _, h := range order {
			r, err := do(h, call{object: doc})
			if err != nil {
				return nil, err
			}
			if round > 1 && len(r.patch) > 0 {
				return nil, fmt.Errorf("the object changes again after two rounds: %s", r.patch)
			}
			doc = r.object
		}
	}
	return doc, nil
}

// namespaceFilled checks that the result is the same with and without metadata.namespace.
func namespaceFilled(c Case) error {
	var seen []any
	for _, namespace := range []any{"shop", nil} {
		doc := parse(plain)
		if doc["metadata"].(object)["namespace"] = namespace; namespace == nil {
			delete(doc["metadata"].(object), "namespace")
		}
		after, err := created(c.New(), doc)
		if err != nil {
			return err
		}
		delete(after["metadata"].(object), "namespace")
		seen = append(seen, after)
	}
	if !reflect.DeepEqual(seen[0], seen[1]) {
		return fmt.Errorf("with metadata.namespace the result is %s, without it %s", text(seen[0]), text(seen[1]))
	}
	return nil
}
