// SPDX-License-Identifier: Apache-2.0

package external

import "errors"

// A Failure is the reason why there is no answer to a question. As an error it has no API status, so a hook that
// returns it fails instead of denying the request.
type Failure struct {
	// Service is the name of the service.
	Service string
	// Err is [ErrCircuitOpen], an error of [Options.Send], or another reason why there is no answer. It wraps the error
	// of the context if that ended first. It may have an API status.
	Err error
}

// Error returns the name of the service and the text of Err.
func (f *Failure) Error() string { return "asking " + f.Service + ": " + f.Err.Error() }

// Is reports whether Err wraps the target. There is no method Unwrap, which would expose the API status of Err.
func (f *Failure) Is(target error) bool { return errors.Is(f.Err, target) }

// Fail is an [Options.OnFailure] for a hook that cannot decide without the service. Ask returns the failure as its
// error. A hook that returns this error fails, so the failurePolicy decides.
func Fail[Q, A any](_ Q, failure *Failure) (answer A, err error) { return answer, failure }

// AnswerWith returns an [Options.OnFailure] for a hook that can decide without the service: Ask returns this answer.
func AnswerWith[Q, A any](answer A) func(Q, *Failure) (A, error) {
	return func(Q, *Failure) (A, error) { return answer, nil }
}
