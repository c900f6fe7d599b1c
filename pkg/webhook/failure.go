// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/review"
)

// fail answers with an HTTP error whose body client-go reads as an API status: its message is
// then the one sentence that the user sees.
func (x *exchange) fail(w http.ResponseWriter, err error) {
	x.endConnection(w)
	if x.http1 && !time.Now().Before(x.ctx.deadline) {
		// While net/http reads to see the API server hang up, the deadline for reading may have
		// been over for a moment: then it takes that for the end of the connection, and the
		// contexts of later calls on it would have ended before they began.
		w.Header()["Connection"] = closeConnection
	}
	if own := (*failure)(nil); errors.As(err, &own) && own.retryAfter != nil {
		w.Header()["Retry-After"] = own.retryAfter
	}
	status := x.failed(err)
	if !x.unread {
		writeStatus(w, status)
		return
	}
	if !x.kept {
		w.Header()["Connection"] = closeConnection
	}
	writeEarly(w, int(status.Code), statusBody(status))
}

// failOn is fail on a connection that was taken away from the HTTP server. It closes it.
func failOn(conn net.Conn, status metav1.Status) {
	defer func() { _ = conn.Close() }()
	body := statusBody(status)
	answer := http.Response{
		ProtoMajor: 1, ProtoMinor: 1, StatusCode: int(status.Code), Close: true,
		Header:        http.Header{"Content-Type": jsonType},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_ = answer.Write(conn) // the API server is gone: nobody to tell
}

// failed logs a failure, tells observers of it, and returns it as an API status with the uid of
// the call, where it could be read.
func (x *exchange) failed(err error) metav1.Status {
	status := failureStatus(err)
	if uid := x.ctx.about.uid; uid != "" {
		details := metav1.StatusDetails{}
		if status.Details != nil {
			details = *status.Details
		}
		details.UID = uid
		status.Details = &details
	}
	outcome := x.outcomeOf(err)
	x.logFailure(&status, err, outcome)
	x.tell(Observation{Outcome: outcome, Code: status.Code, Err: err})
	return status
}

// logFailure logs what failed. Of what strangers can cause at any rate it does so sparingly, but
// always of what a handler did.
func (x *exchange) logFailure(status *metav1.Status, err error, outcome Outcome) {
	log, message := x.ctx.logger(), errors.New(status.Message)
	var panicked *panicError
	switch {
	case outcome == Shed:
		x.ctx.hook.gate.shed.log(log, message, "a call was turned away", "code", status.Code)
	case outcome == Canceled:
		log.V(1).Info("the API server closed the connection before the answer", "reason", status.Message)
	case errors.As(err, &panicked):
		log.WithValues("stack", panicked.stack).Error(message, "cannot decide", "code", status.Code)
	case x.ctx.hook.gate != nil && !x.reached:
		x.ctx.hook.gate.unread.log(log, message, "cannot decide", "code", status.Code)
	default:
		log.Error(message, "cannot decide", "code", status.Code)
	}
}

// outcomeOf classifies a failure to decide. One that comes of a client that went away is nobody's:
// an API server that restarts, or a user who gives up, must not look like a hook that fails. But one
// that waited for long did not get its answer in time: what it makes again after a 429 it waits for
// less than it says, and with a client that has a timeout of its own it gives up when that does.
func (x *exchange) outcomeOf(err error) Outcome {
	outcome := outcomeOf(err)
	if outcome == Failed && x.isGone() && (errors.Is(err, errHungUp) || strings.Contains(err.Error(), context.Canceled.Error())) {
		outcome = Canceled // by its text, since not all who call others in between wrap the error
	}
	if outcome == Canceled && time.Since(x.ctx.start) >= x.ctx.budget/2 {
		return TimedOut
	}
	return outcome
}

// isGone reports whether the client went away. A deadline, which middleware may have set, is none
// of its doing.
func (x *exchange) isGone() bool { return errors.Is(x.client.Err(), context.Canceled) }

// brokenOff is the failure of a call whose body ended before its end.
func (x *exchange) brokenOff(err error) error {
	f := newFailure(http.StatusBadRequest, "cannot read the body: "+err.Error())
	if x.isGone() || !x.http1 && isReset(err) {
		f.outcome = Canceled
	}
	return f
}

// isReset reports whether it is the end of an HTTP/2 stream or connection of which reading a body
// tells. The context of the request ends a moment later, and the errors have no exported type.
func isReset(err error) bool {
	text := err.Error()
	return text == "client disconnected" || strings.HasPrefix(text, "stream error: ") && strings.HasSuffix(text, "received from peer")
}

func writeStatus(w http.ResponseWriter, status metav1.Status) {
	write(w, int(status.Code), statusBody(status))
}

func statusBody(status metav1.Status) []byte {
	body, _ := json.Marshal(status) // strings and numbers: always marshals
	return append(body, '\n')
}

// failureStatus gives every failure to decide a code of 400–599 and a reason. An API error of
// 500 and more, from a call that the handler made, keeps its own.
func failureStatus(err error) metav1.Status {
	status := metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
	var own *failure
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &own):
		status = withText(own.status, err)
	case errors.As(err, &api):
		if s := api.Status(); s.Code >= 400 && s.Code <= 599 {
			status = withText(s, err)
		}
	}
	status = *review.Deny(status).Denial() // completed by the same rules as a denial
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Message = textutil.Clip(status.Message, maxMessageBytes)
	return status
}

// What comes from a body may be as long as the body; what is shown and logged of it is not.
const (
	maxMessageBytes = 2048
	maxValueBytes   = 256
)

// clip shortens a value that is part of a message or a log line.
func clip(s string) string { return textutil.Clip(s, maxValueBytes) }
