// SPDX-License-Identifier: Apache-2.0

// Package problem has errors for the user of a command: one sentence, and hints on what to do.
package problem

import (
	"errors"
	"fmt"
)

// ErrFound ends a command that succeeded and reported findings. It is not printed.
var ErrFound = errors.New("something was found")

// Exit ends a command with the exit code of a program that it ran. It is not printed.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// An Error is a message for the user with hints. The message does not begin with a capital letter or end with a full
// stop.
type Error struct {
	Err error
	// Hints say what to do, one per line. The best hint is a command that can be pasted.
	Hints []string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without the hints.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error without hints. Its arguments are those of fmt.Errorf.
func New(format string, args ...any) *Error { return &Error{Err: fmt.Errorf(format, args...)} }

// Hint returns err with a further hint, which is printed last.
func Hint(err error, format string, args ...any) *Error {
	return &Error{Err: err, Hints: append(Hints(err), fmt.Sprintf(format, args...))}
}

// Hint returns e with a further hint.
func (e *Error) Hint(format string, args ...any) *Error { return Hint(e, format, args...) }

// Hints returns the hints of err or of an error that it wraps.
func Hints(err error) []string {
	for with := (*Error)(nil); errors.As(err, &with); err = with.Err {
		if len(with.Hints) > 0 { // Hints includes the hints of the errors that it wraps
			return append([]string(nil), with.Hints...)
		}
	}
	return nil
}
