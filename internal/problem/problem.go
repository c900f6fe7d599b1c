// SPDX-License-Identifier: Apache-2.0

// Package problem holds what a command says when it cannot do what it was asked: one sentence,
// and hints that can be typed.
package problem

import (
	"errors"
	"fmt"
)

// ErrFound ends a command that did its work and found something. It prints nothing: what was found
// has been printed.
var ErrFound = errors.New("something was found")

// Exit ends a command that ran another one with the exit code of that one. It prints nothing: the other has.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// An Error is a sentence for a person, lower case and without a full stop, with hints.
type Error struct {
	Err error
	// Hints tell what to do, each in a line: best a command that can be typed.
	Hints []string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without the hints.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error; add hints with Hint.
func New(format string, args ...any) *Error { return &Error{Err: fmt.Errorf(format, args...)} }

// Hint adds a hint to err, below those that it has.
func Hint(err error, format string, args ...any) *Error {
	return &Error{Err: err, Hints: append(Hints(err), fmt.Sprintf(format, args...))}
}

// Hint adds a hint.
func (e *Error) Hint(format string, args ...any) *Error { return Hint(e, format, args...) }

// Hints returns those of err, or of what it wraps.
func Hints(err error) []string {
	for with := (*Error)(nil); errors.As(err, &with); err = with.Err {
		if len(with.Hints) > 0 { // those of what it wraps are among them
			return append([]string(nil), with.Hints...)
		}
	}
	return nil
}
