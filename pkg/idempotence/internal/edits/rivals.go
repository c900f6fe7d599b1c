// SPDX-License-Identifier: Apache-2.0

package edits

import "github.com/admitkit/admitkit/pkg/idempotence/internal/tree"

// A Rival is a simulated webhook that changes the same objects as the tested one. It changes only what a webhook in a
// cluster may change.
type Rival struct {
	Name string
	// Aim returns the function with which the rival edits a document. x is the object of the case, and result the
	// tested webhook's result for it. Most rivals ignore both. Aim is nil if Conduct is Fills: package laws chooses
	// those edits.
	Aim func(x, result any) func(doc any) any
	Conduct
	// Ignores reports whether changes at a path do not count when the two webhooks are called in turns, because the
	// rival removes there what others add. It may be nil.
	Ignores func(p tree.Path) bool
}

// Conduct says what a rival changes. The checks of L11 and L12 expect less of a webhook beside some rivals.
type Conduct string

// The kinds of conduct.
const (
	// OwnParts means that the rival changes only its own parts. The result must not depend on the order of the two
	// webhooks.
	OwnParts Conduct = "changes its own parts"
	// Rewrites means that the rival rewrites values of the user. A value that the tested webhook has derived from such
	// a value must follow the change.
	Rewrites Conduct = "rewrites values"
	// Fills means that the rival sets absent fields. They are the fields to which the tested webhook adds a zero value.
	Fills Conduct = "fills absent fields"
	// Decides means that the rival changes values that the tested webhook may read, so the result may depend on the
	// order.
	Decides Conduct = "decides"
	// Competes means that the rival sets the fields of the tested webhook to other values, if they are absent. So the
	// webhook that is called first decides.
	Competes Conduct = "competes"
)

// OrderMatters reports whether the result may depend on the order of the two webhooks, whatever the tested one does.
func (c Conduct) OrderMatters() bool { return c == Decides || c == Competes }

// always returns an Aim that returns change for every object.
func always(change func(doc any) any) func(x, result any) func(doc any) any {
	return func(any, any) func(any) any { return change }
}

// Rivals are the simulated rivals.
var Rivals = []Rival{
	{Name: "appends a sidecar", Conduct: OwnParts, Aim: always(func(doc any) any { return withSidecar(doc, false) })},
	{Name: "inserts a sidecar" + FrontRival, Conduct: OwnParts, Aim: always(func(doc any) any { return withSidecar(doc, true) })},
	{Name: "keeps its parts" + FrontRival, Conduct: OwnParts, Aim: always(func(doc any) any { return kept(doc, true) })},
	{Name: "keeps its parts last", Conduct: OwnParts, Aim: always(func(doc any) any { return kept(doc, false) })},
	{Name: "sets an environment variable", Conduct: OwnParts, Aim: always(withVariable)},
	{Name: "annotates and labels", Conduct: OwnParts, Aim: always(withNotes)},

	{Name: "takes images from a mirror", Conduct: Rewrites, Aim: always(mirrored)},
	{Name: "wraps commands", Conduct: Rewrites, Aim: always(wrapped)},
	{Name: "sorts lists", Conduct: Rewrites, Aim: always(sorted)},
	{Name: "fills absent fields", Conduct: Fills},
	{Name: "sets the same fields", Conduct: Competes, Aim: sameFields},
	{Name: "sets the name", Conduct: Decides, Aim: always(withName)},
	{Name: "removes a container", Conduct: Decides, Aim: removesLast},
	{Name: "removes its own container", Conduct: Decides, Aim: always(withdrawn)},
	{Name: "strips annotations", Conduct: Decides, Aim: always(stripped), Ignores: IsNote},
}
