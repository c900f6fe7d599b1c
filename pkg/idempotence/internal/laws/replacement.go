// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// takesReplacement checks that the webhook adds its parts again in an update that lacks them. The new object is the
// manifest from which the object was created, as with kubectl replace, a restored backup, or an update by a controller.
// It also lacks an annotation of the user, which must not come back.
func (l updates) takesReplacement(c *Case) *Finding {
	manifest, ok := l.Kind.ManifestOf(c.Object)
	if !ok {
		return nil
	}
	if !l.Handles(admissionv1.Update) {
		return l.withoutUpdate(c, manifest)
	}
	annotated, ok := tree.Put(manifest, edits.TouchedAnnotation, "yes")
	if !ok {
		return nil
	}
	created, ok := l.createdFrom(annotated)
	if !ok {
		return nil
	}
	defer l.startUpdates(nil)()
	s := l.Fresh()
	stored, ok := l.settled(s, created.After)
	plain, valid := l.Valid(manifest)
	if !ok || !valid || tree.Equal(stored.After.Doc, plain.Doc) {
		return nil
	}
	out := l.F(s, session.Query{Object: plain, Old: stored.After})
	if v := l.failed(c, out); v != nil {
		return v
	}
	refused := len(l.Kind.UpdateProblems(plain, stored.After)) > 0
	if !out.OK() {
		denied := out.Fault == "" && !out.Allowed && !refused
		if !denied || !l.F(l.Fresh(), session.Query{Object: plain, Old: plain}).OK() {
			return nil // it denies every such update, or the API server would reject this one
		}
		return l.Finding(c, Denied, "the manifest is denied when it replaces the object that was created from it: "+out.Message, stored, out)
	}
	if problems := l.updateProblems(c.Law, out.After, stored.After); len(problems) > 0 {
		text := strings.Join(problems, "; ")
		switch {
		case !refused:
			return l.Finding(c, Immutable, "the object cannot be replaced by its manifest, because the webhook changes immutable fields: "+text, stored, out)
		case l.replaceable(c.Object):
			return l.cannotReplace(c, text, created, out)
		}
		return nil
	}
	if tree.Has(stored.After.Doc, edits.TouchedAnnotation) && tree.Has(out.After.Doc, edits.TouchedAnnotation) {
		return l.Finding(c, PutsBack, "an update cannot remove "+edits.TouchedAnnotation.String()+": the webhook puts it back", stored, out)
	}
	lost := l.lostByReplace(c.Law, stored.After, out.After)
	if len(lost) == 0 {
		return l.regenerates(c, plain, stored, out)
	}
	v := l.Finding(c, LostByReplace, "if the manifest replaces the object, the webhook does not add its parts again: "+summary(lost), stored, out)
	v.Advice = !slices.ContainsFunc(lost, func(d tree.Change) bool { return isComposite(d.Old) || isElement(d, d.Kind) }) && l.changesNoUpdate(plain)
	return v
}

// withoutUpdate checks a webhook that does not handle UPDATE. The API server does not call it when the manifest replaces the
// object. If the webhook has set immutable fields, the API server rejects the manifest. If it has set other fields, they
// are missing afterwards, and the finding is advice.
func (l updates) withoutUpdate(c *Case, manifest any) *Finding {
	created, ok := l.createdFrom(manifest)
	if !ok || !l.replaceable(c.Object) {
		return nil
	}
	defer l.startUpdates(nil)()
	stored, ok := l.Valid(created.After.Doc)
	plain, valid := l.Valid(manifest)
	if !ok || !valid {
		return nil
	}
	replaced := session.Admitted(plain)
	if problems := l.updateProblems(c.Law, plain, stored); len(problems) > 0 {
		return l.cannotReplace(c, strings.Join(problems, "; "), created, replaced)
	}
	lost := slices.DeleteFunc(l.differences(c.Law, created.After, plain), func(d tree.Change) bool {
		return d.Kind != tree.Removed || d.Path[0].Name == "status" || d.Path[0].Name == "metadata" && !edits.IsNote(d.Path) || edits.IsZero(d.Old) || l.isCarriedOver(d.Path, created.After, plain)
	})
	if len(lost) == 0 {
		return nil
	}
	v := l.Finding(c, NeedsUpdate, "if the manifest replaces the object, values that the webhook has set are missing, because its rules do not include UPDATE: "+summary(lost), created, replaced)
	v.Advice = true // it may set defaults for new objects only
	return v
}

func (l updates) cannotReplace(c *Case, problems string, created, replaced *session.Outcome) *Finding {
	v := l.Finding(c, CannotReplace, "the object cannot be replaced by its manifest, because the webhook has set immutable fields that the manifest lacks or sets to other values: "+problems, created, replaced)
	v.Advice = slices.Contains(lockedLater, l.Kind.Kind)
	return v
}

// lockedLater are kinds that users seldom replace, or that a webhook may make immutable on purpose. Binding sets further
// immutable fields of volumes and claims. The field immutable is for ConfigMaps and Secrets.
var lockedLater = []string{"PersistentVolume", "PersistentVolumeClaim", "ConfigMap", "Secret"}

// replaceable reports whether users can replace objects of the kind by their manifests if no webhook changes them. They
// cannot replace Pods, nor Jobs whose manifest has no selector, because creation adds immutable fields to these.
func (l updates) replaceable(doc any) bool {
	if l.Kind.GoType == nil {
		return true
	}
	return l.Kind.Kind != "Pod" && (l.Kind.Kind != "Job" || tree.Has(doc, jobSelector))
}

var statusPath = tree.Path{{Name: "status"}}

var jobSelector = tree.Path{{Name: "spec"}, {Name: "selector"}}

// regenerates returns a finding if a replacement by the manifest gets other random values than the stored object. It
// ignores metadata and times, because a webhook may record there when the object was last written. For the annotations of
// a template, the finding is advice.
func (l updates) regenerates(c *Case, manifest *objects.Object, stored, replaced *session.Outcome) *Finding {
	changes := slices.DeleteFunc(l.differences(c.Law, stored.After, replaced.After), func(d tree.Change) bool {
		return d.Kind != tree.Replaced || d.Path[0].Name == "metadata" || d.Path[0].Name == "status" || !l.isRandom(manifest, d.Path)
	})
	if len(changes) == 0 {
		return nil
	}
	v := l.Finding(c, Regenerates, "if the manifest replaces the object, the webhook replaces its random values: "+summary(changes), stored, replaced)
	v.Advice = !slices.ContainsFunc(changes, func(d tree.Change) bool { return !edits.IsNote(d.Path) })
	return v
}

// changesNoUpdate reports whether the webhook changes nothing in an update of x. It then sets its defaults only at the
// creation of an object, and leaves later changes to the author on purpose.
func (l updates) changesNoUpdate(x *objects.Object) bool {
	out := l.F(l.Fresh(), session.Query{Object: x, Old: x})
	return out.OK() && len(l.withoutEncoding(l.differences(L6, x, out.After))) == 0
}

// lostByReplace returns the parts of a stored object that are missing after it was replaced. Metadata does not count,
// because a webhook may record there how the object was created. Zero values do not count either.
func (l updates) lostByReplace(law Law, stored, replaced *objects.Object) []tree.Change {
	return slices.DeleteFunc(l.differences(law, stored, replaced), func(d tree.Change) bool {
		return d.Kind != tree.Removed || d.Path[0].Name == "metadata" || d.Path[0].Name == "status" || edits.IsNote(d.Path) || edits.IsZero(d.Old) || l.isCarriedOver(d.Path, stored, replaced)
	})
}

// isCarriedOver reports whether the API server keeps the old value of a field that an update lacks: the allocated values
// of a Service whose type stays the same. See patchAllocatedValues in k8s.io/kubernetes/pkg/registry/core/service/storage.
func (l updates) isCarriedOver(p tree.Path, old, updated *objects.Object) bool {
	if l.Kind.GoType == nil || l.Kind.Kind != "Service" || len(p) < 2 || p[0].Name != "spec" {
		return false
	}
	before, _ := tree.Get(old.Doc, serviceType)
	after, _ := tree.Get(updated.Doc, serviceType)
	field := p[1].Name
	return tree.Equal(before, after) && (slices.Contains([]string{"clusterIP", "clusterIPs", "healthCheckNodePort"}, field) || field == "ports" && p.Last() == "nodePort")
}

var serviceType = tree.Path{{Name: "spec"}, {Name: "type"}}

// readsStatus checks that the result of an update does not depend on the status in the new object. A manifest has none,
// so a webhook must take the status from the old object.
func (l updates) readsStatus(c *Case) *Finding {
	manifest, ok := l.Kind.ManifestOf(c.Object)
	status := l.Kind.StatusExample()
	if !ok || status == nil || !l.Handles(admissionv1.Update) {
		return nil
	}
	created, ok := l.createdFrom(manifest)
	if !ok {
		return nil
	}
	defer l.startUpdates(nil)()
	withStatus := func(doc any) *objects.Object {
		next, ok := tree.Put(doc, statusPath, status)
		if !ok {
			return nil
		}
		return l.asSent(next)
	}
	old, plain, both := withStatus(created.After.Doc), l.asSent(manifest), withStatus(manifest)
	if old == nil || plain == nil || both == nil {
		return nil
	}
	var outs []*session.Outcome
	for _, o := range []*objects.Object{both, plain, both} {
		out := l.F(l.Fresh(), session.Query{Object: o, Old: old})
		if !out.OK() || len(l.Kind.UpdateProblems(out.After, old)) > 0 {
			return nil
		}
		outs = append(outs, out)
	}
	with, without, repeated := outs[0], outs[1], outs[2]
	changes := slices.DeleteFunc(l.withoutEncoding(l.differences(c.Law, with.After, without.After)), func(d tree.Change) bool {
		if d.Path[0].Name == "status" || d.Path[0].Name == "metadata" {
			return true
		}
		one, _ := tree.Get(with.After.Doc, d.Path)
		other, _ := tree.Get(repeated.After.Doc, d.Path)
		return !tree.Equal(one, other) // a random value
	})
	if len(changes) == 0 {
		return nil
	}
	return l.Finding(c, ReadsStatus, "the result of the update depends on the status in the new object, but a manifest has no status: "+summary(changes), with, without)
}

// asSent returns a document as a client sends it in an update. It may be invalid until the webhooks have changed it. It
// returns nil if the API server cannot decode the document.
func (l updates) asSent(doc any) *objects.Object {
	o, err := l.Kind.Object(l.Kind.AsSent(doc, true))
	if err != nil {
		return nil
	}
	return o
}
