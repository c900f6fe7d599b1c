// SPDX-License-Identifier: Apache-2.0

package idempotence

// A Step is how far a run is.
type Step struct {
	// Kind is what objects are made of, and Law what looks at one of them.
	Kind string
	Law  Law
	// Object is which object that is, counted from 1, of Objects of this kind. It is 0 for a stored case.
	Object, Objects int
	// Checks and Calls are how many there were of this kind.
	Checks, Calls int
}

// tellStep says what is looked at now.
func (r *run) tellStep(law Law) {
	if r.opts.step != nil {
		r.opts.step(Step{Kind: kindName(r.kind.GroupVersionKind), Law: law, Object: r.at, Objects: r.opts.objects, Checks: r.checks, Calls: r.calls})
	}
}
