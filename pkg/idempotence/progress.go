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

// Progress has a run tell how far it is: before each check, which is often, and in the goroutine of the run.
func Progress(tell func(Step)) Option { return func(o *options) { o.step = tell } }

// Lines are what a report says to type for the same run, and for one case that is stored in a file. It is
// for programs that have a command line of their own, where Go code is no help.
func Lines(again func(seed int64, objects int) string, replay func(file string) string) Option {
	return func(o *options) { o.again, o.replay = again, replay }
}

// tellStep says what is looked at now.
func (r *run) tellStep(law Law) {
	if r.opts.step != nil {
		r.opts.step(Step{Kind: kindName(r.kind.GroupVersionKind), Law: law, Object: r.at, Objects: r.opts.objects, Checks: r.checks, Calls: r.calls})
	}
}
