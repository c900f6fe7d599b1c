// SPDX-License-Identifier: Apache-2.0

// Package reply turns failures to decide into API statuses and writes answers.
package reply

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/review"
)

// A Cause classifies a failure to decide.
type Cause int

// The causes of failures.
const (
	Other    Cause = iota
	TimedOut       // the handler or the body was too late
	Shed           // the server had no room for the call, or was stopping
	Canceled       // the client went away
)

// A Failure is a failure to decide and the HTTP answer for it. It must not implement APIStatus,
// because a handler that returns a Failure with code 400 must not deny.
type Failure struct {
	Status     metav1.Status
	Cause      Cause
	RetryAfter []string // values of the header
}

func (f *Failure) Error() string { return f.Status.Message }

// New returns a failure with an HTTP code.
func New(code int, message string, causes ...metav1.StatusCause) *Failure {
	f := &Failure{Status: metav1.Status{Code: int32(code), Message: message}}
	if len(causes) > 0 {
		f.Status.Details = &metav1.StatusDetails{Causes: causes}
	}
	return f
}

// BadRequest returns a failure with code 400.
func BadRequest(format string, args ...any) error {
	return New(http.StatusBadRequest, fmt.Sprintf(format, args...))
}

// Never leaves out the header Retry-After, if it is the argument retryAfter of TurnAway.
const Never = -1

// TurnAway returns the failure for a call that the server rejects before it has read the body to its end. The client
// may repeat the call after retryAfter seconds.
func TurnAway(code int, message string, retryAfter int) *Failure {
	f := New(code, message)
	f.Cause = Shed
	if retryAfter != Never {
		f.RetryAfter = []string{fmt.Sprint(retryAfter)}
		f.Status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	return f
}

// A Panic is the error for a panic of user code.
type Panic struct {
	What  string // the code that panicked
	Value any
	Stack string
}

func (p *Panic) Error() string { return fmt.Sprintf("%s panicked: %v", p.What, p.Value) }

// NewPanic returns the error for a recovered value. Call it in the deferred function that recovered.
func NewPanic(what string, value any) *Panic { return &Panic{what, value, string(debug.Stack())} }

// Recover recovers a panic and stores it in *err. Defer it.
func Recover(what string, err *error) {
	if p := recover(); p != nil {
		*err = NewPanic(what, p)
	}
}

// StatusOf returns the API status of a failure to decide, with a code of 400–599 and a reason. An
// API error keeps its own code and reason.
func StatusOf(err error) metav1.Status {
	status := metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
	var own *Failure
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &own):
		status = WithText(own.Status, err)
	case errors.As(err, &api):
		if s := api.Status(); s.Code >= 400 && s.Code <= 599 {
			status = WithText(s, err)
		}
	}
	status = *review.Deny(status).Denial() // completed by the same rules as a denial
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Message = textutil.Clip(status.Message, MaxMessageBytes)
	return status
}

// WithText returns the status with the text of err as its message. If the text is empty, the message stays.
func WithText(status metav1.Status, err error) metav1.Status {
	if text := err.Error(); text != "" {
		status.Message = text
	}
	return status
}

// The limits of text that comes from a client, in answers and log lines.
const (
	MaxMessageBytes = 2048
	maxValueBytes   = 256
)

// Clip shortens a value that is part of a message or a log line.
func Clip(s string) string { return textutil.Clip(s, maxValueBytes) }
