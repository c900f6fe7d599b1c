// SPDX-License-Identifier: Apache-2.0

package idempotence

// A Step is the progress of a run.
type Step struct {
	// Kind is the kind of the objects, and Law the law that is checked.
	Kind string
	Law  Law
	// Object is the number of the object, counted from 1, out of Objects. It is 0 for a stored case.
	Object, Objects int
	// Checks and Calls count what was done for this kind.
	Checks, Calls int
}

// reportStep reports the check that begins.
func (r *run) reportStep(law Law) {
	if r.opts.step != nil {
		r.opts.step(Step{Kind: kindName(r.kind.GroupVersionKind), Law: law, Object: r.at, Objects: r.opts.objects, Checks: r.checks, Calls: r.calls})
	}
}
