// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A call may be answered before its body was read: the server has no room, the body is too large,
// or no hook is served at the path. With HTTP/2 only that call ends. With HTTP/1.1 the rest of the
// body delays the next call on the connection:
//
//   - net/http reads a part of the body before it answers, for as long as the client takes.
//   - If the server closes the connection with unread bytes, the client may lose the answer.
//   - Go's client reuses the connection once it has written the body, even if the server has not read it. If
//     the server closes the connection later, the client loses its next call.
//
// So the server answers first and then reads the rest. If the next call can follow on the connection, the server closes
// the connection only if reading the rest takes longer than any call may. Otherwise the answer contains "Connection:
// close".
const (
	maxKeptBytes    = 4 << 20 // reading this much costs less than a new TLS handshake
	maxDiscardBytes = 16 << 20
)

// These durations limit how long the server reads the rest of a body.
const (
	DiscardKept     = 30 * time.Second // on a connection that stays open
	DiscardLast     = 10 * time.Second // before the connection closes, so that the client reads the answer
	DiscardUntimely = time.Second      // for a client that sent no valid call, or was slow
)

// HasBody reports whether the body of r delays the next request on its connection.
func HasBody(r *http.Request) bool { return r.ProtoMajor == 1 && r.ContentLength != 0 }

// CanKeep reports whether the body of r is so small that the server can read it and keep the
// connection.
func CanKeep(r *http.Request) bool { return 0 < r.ContentLength && r.ContentLength <= maxKeptBytes }

// WriteEarly sends an answer before the body was read. The caller sets the Connection header.
func WriteEarly(w http.ResponseWriter, code int, body []byte) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // else net/http reads a part of the body first
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	if Write(w, code, body) {
		_ = control.Flush()
	}
}

// WriteUnread answers a request whose body the server does not want, and discards the body.
func WriteUnread(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	if !HasBody(r) {
		Write(w, code, body)
		return
	}
	if !CanKeep(r) {
		CloseConnection(w)
	}
	WriteEarly(w, code, body)
	Discard(w, r, DiscardUntimely)
}

// WriteUnreadStatus is WriteUnread for an API status.
func WriteUnreadStatus(w http.ResponseWriter, r *http.Request, status metav1.Status) {
	WriteUnread(w, r, int(status.Code), Encode(status))
}

// Discard reads the rest of the body after the answer. It closes the connection, by a panic with http.ErrAbortHandler,
// if that takes longer than longest or the rest is larger than maxDiscardBytes. The server may close the connection
// earlier to make room for another one.
func Discard(w http.ResponseWriter, r *http.Request, longest time.Duration) {
	end := time.Now().Add(longest)
	SetReadDeadline(w, end)
	_, err := io.CopyN(io.Discard, r.Body, maxDiscardBytes)
	if err == io.EOF { //nolint:errorlint // the end of a body is never wrapped
		// A deadline that has passed would look to net/http like the end of the connection.
		if SetReadDeadline(w, time.Time{}); time.Now().Before(end) {
			return
		}
	}
	panic(http.ErrAbortHandler)
}
