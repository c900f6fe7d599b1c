// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// takesAgain checks that the object does not change when a user applies its manifest again.
func (l updates) takesAgain(c *Case) *Finding {
	manifest, ok := l.Kind.ManifestOf(c.Object)
	if !ok || !l.Handles(admissionv1.Update) {
		return nil
	}
	created, ok := l.createdFrom(manifest)
	if !ok {
		return nil
	}
	defer l.startUpdates(nil)()
	s := l.Fresh()
	stored, ok := l.settled(s, created.After)
	if !ok || l.appliesDifferently(manifest) {
		return nil
	}
	applied, ok := l.applied(manifest, stored.After)
	if !ok {
		return nil
	}
	out := l.F(s, session.Query{Object: applied, Old: stored.After})
	if v := l.failed(c, out); v != nil {
		return v
	}
	refused := len(l.Kind.UpdateProblems(applied, stored.After)) > 0
	switch {
	case out.Fault == "" && !out.Allowed && !refused:
		return l.Finding(c, Denied, "the manifest is denied when it is applied again: "+out.Message, created, stored, out)
	case !out.OK() || refused && len(l.Kind.UpdateProblems(out.After, stored.After)) > 0:
		return nil // the manifest cannot be applied
	}
	changes := slices.DeleteFunc(l.withoutEncoding(l.differences(c.Law, stored.After, out.After)), func(d tree.Change) bool {
		byApply := d.Kind == tree.Moved && (!out.Patched || l.sameOrder(d.Path, applied, out.After)) // an apply merges lists in an order of its own
		return byApply || sameQuantity(d.Old, d.New) || l.isWrittenZero(manifest, d.Path)
	})
	if len(changes) > 0 {
		return l.Finding(c, NotTheSame, "applying the manifest again changes the object: "+summary(changes), created, stored, out)
	}
	return nil
}

// sameOrder reports whether the webhook left the elements of a list in their order.
func (l updates) sameOrder(list tree.Path, applied, result *objects.Object) bool {
	return !slices.ContainsFunc(tree.Changes(applied.Doc, result.Doc), func(d tree.Change) bool {
		return d.Kind == tree.Moved && slices.Equal(d.Path, list)
	})
}

// isWrittenZero reports whether the manifest of a custom resource sets a field to its zero value. That means the same as
// an absent field, but an apply removes what the webhook has set there.
func (l updates) isWrittenZero(manifest any, p tree.Path) bool {
	value, ok := tree.Get(manifest, p)
	return ok && l.Kind.GoType == nil && edits.IsZero(value)
}

// sameQuantity reports whether two texts or numbers are the same quantity, such as "1" and "1000m".
func sameQuantity(a, b any) bool {
	p, ok := quantityOf(a)
	q, also := quantityOf(b)
	return ok && also && p.Cmp(q) == 0
}

func quantityOf(v any) (q resource.Quantity, ok bool) {
	switch v.(type) {
	case string, int64, float64:
		q, err := resource.ParseQuantity(fmt.Sprint(v))
		return q, err == nil
	}
	return q, false
}

// applied returns the stored object after an apply of the manifest. The API server may still reject it.
func (l updates) applied(manifest any, stored *objects.Object) (*objects.Object, bool) {
	doc, ok := l.Kind.Apply(manifest, stored.Doc)
	if !ok {
		return nil, false
	}
	o, err := l.Kind.Object(l.Kind.AsSent(doc, true))
	return o, err == nil
}

// appliesDifferently reports whether applying a manifest again changes the object even without the webhook: an apply
// merges list elements with the same name, for example variables.
func (l updates) appliesDifferently(manifest any) bool {
	plain, ok := l.Valid(manifest)
	if !ok {
		return true
	}
	again, ok := l.applied(manifest, plain)
	return !ok || !tree.Equal(plain.Doc, again.Doc)
}

// createdFrom returns the result of the first apply of a manifest, which has no calls if the webhook does not handle
// CREATE.
func (l updates) createdFrom(manifest any) (*session.Outcome, bool) {
	create := l.Operation
	l.Operation = admissionv1.Create
	defer func() { l.Operation = create }()
	x, ok := l.Valid(manifest)
	if !ok || !l.Handles(admissionv1.Create) {
		return session.Admitted(x), ok
	}
	out := l.F(l.Fresh(), session.Query{Object: x})
	if !out.OK() || len(l.Kind.Problems(out.After)) > 0 {
		return nil, false
	}
	return out, true
}

// settled sends an update that changes nothing, and returns its result. A webhook that acts on updates only makes its
// changes here.
func (l updates) settled(s session.Instances, created *objects.Object) (*session.Outcome, bool) {
	stored, ok := l.Valid(created.Doc)
	if !ok {
		return nil, false
	}
	out := l.F(s, session.Query{Object: stored, Old: stored})
	return out, out.OK() && len(l.Kind.UpdateProblems(out.After, stored)) == 0
}
