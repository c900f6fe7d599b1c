// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A call may be answered before its body was read: it is turned away, too large, or not for a
// hook. With HTTP/2 only that call ends. With HTTP/1.1 the rest of the body is in the way of the
// next call, and
//
//   - net/http would read some of it before it answers, for as long as the client takes;
//   - if the server closed the connection with bytes unread, the client would be told of that,
//     and the answer lost;
//   - Go's client uses the connection again if it has written all of the body by then, whether
//     anybody has read it or not: if the server closed the connection later, that next call
//     would be lost.
//
// So the answer comes first, then the server reads. A connection on which the next call may
// come is not closed unless that takes longer than any call may. For others the answer says that
// it is the last.
const (
	mostDiscarded = 4 << 20 // for the sake of a connection: it costs less than another TLS handshake
	mostUnread    = 16 << 20
	discardKept   = 30 * time.Second
	discardLast   = 10 * time.Second // the client has to read the answer
	discardOthers = time.Second      // of a client that may be anybody
)

// leavesBody reports whether a body of a request is in the way of the next.
func leavesBody(r *http.Request) bool { return r.ProtoMajor == 1 && r.ContentLength != 0 }

// isKept reports whether the rest of a body is read for the sake of its connection, if the call
// may come again: the API server makes one again that was turned away.
func isKept(r *http.Request) bool { return 0 < r.ContentLength && r.ContentLength <= mostDiscarded }

// writeEarly answers before the body was read. The headers are the caller's.
func writeEarly(w http.ResponseWriter, code int, body []byte) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // else the answer takes longer
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	if write(w, code, body) {
		_ = control.Flush()
	}
}

// writeToStranger answers a request that is no call of a hook, or must not be.
func writeToStranger(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	if !leavesBody(r) {
		write(w, code, body)
		return
	}
	if !isKept(r) {
		w.Header()["Connection"] = closeConnection
	}
	writeEarly(w, code, body)
	discard(w, r, discardOthers)
}

func statusToStranger(w http.ResponseWriter, r *http.Request, status metav1.Status) {
	writeToStranger(w, r, int(status.Code), statusBody(status))
}

// keep is discard for a connection on which the next call may come.
func (c *connection) keep(w http.ResponseWriter, r *http.Request) {
	if c != nil {
		c.kept.Store(true)
		defer func() { // from now on it is late, and not before
			c.left.Store(int64(time.Since(c.born)))
			c.kept.Store(false)
		}()
	}
	discard(w, r, discardKept)
}

// discard reads the rest of the body after the answer, and closes the connection if it takes too
// long or there is too much. Meanwhile the connection may be closed to make room for another: see
// connections.stalled.
func discard(w http.ResponseWriter, r *http.Request, longest time.Duration) {
	end := time.Now().Add(longest)
	setReadDeadline(w, end)
	_, err := io.CopyN(io.Discard, r.Body, mostUnread)
	if err == io.EOF { //nolint:errorlint // it is the end of a body
		if setReadDeadline(w, time.Time{}); time.Now().Before(end) { // else it may have been over: see exchange.fail
			return
		}
	}
	panic(http.ErrAbortHandler) // closes the connection
}
