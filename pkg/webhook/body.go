// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"
)

// readBody checks what can be checked before reading, then reads no more than it may, into the
// memory of buf as far as that goes, and not for longer than until the deadline of the call.
func (x *exchange) readBody(w http.ResponseWriter, r *http.Request, buf []byte, limit int64) ([]byte, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, newFailure(http.StatusMethodNotAllowed, fmt.Sprintf("method %s: an AdmissionReview is sent by POST", r.Method))
	}
	if ct := r.Header.Get("Content-Type"); !isJSON(ct) {
		return nil, newFailure(http.StatusUnsupportedMediaType, fmt.Sprintf("content type %q: want application/json", ct))
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, newFailure(http.StatusUnsupportedMediaType, fmt.Sprintf("content encoding %q: the body must not be encoded", enc))
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	from := r.Body
	if r.ContentLength < 0 { // it also has the server close the connection when there is too much
		from = http.MaxBytesReader(w, from, limit)
	}
	setReadDeadline(w, x.ctx.deadline)
	body, slow, err := x.readAll(w, from, buf, r.ContentLength, limit)
	x.unread = x.unread && (isOwn(err) || slow && err != nil || int64(len(body)) > limit)
	switch {
	case slow:
		setReadDeadline(w, time.Time{})
		if x.http1 {
			w.Header()["Connection"] = closeConnection
		}
		return nil, x.tooSlow()
	case err != nil:
		return nil, x.unreadable(err, limit)
	case int64(len(body)) > limit:
		return nil, tooLarge(limit)
	case len(body) == 0:
		return nil, newFailure(http.StatusBadRequest, "the body is empty: want an AdmissionReview")
	}
	// From now on net/http reads to notice when the API server hangs up. To it, a deadline that
	// is over looks the same.
	setReadDeadline(w, time.Time{})
	return body, nil
}

// readAll reads the body, and reports whether it had to stop for the sake of another call.
func (x *exchange) readAll(w http.ResponseWriter, from io.Reader, buf []byte, length, limit int64) (body []byte, slow bool, err error) {
	g := x.ctx.hook.gate
	if g == nil {
		body, err = readAll(from, buf, length, limit, x.reserve)
		return body, false, err
	}
	g.bodies.begin(x.body, from, w)
	body, err = readAll(x.body, buf, length, limit, x.reserve)
	x.ousted, x.bytes = g.bodies.end(x.body)
	x.body = nil
	return body, x.ousted, err
}

// setReadDeadline ends reading at t, if w or what it is around can. Of a request that was read
// nothing stays: net/http sets the deadlines of the next one on the connection.
// http.ResponseController does the same, but where that is not possible it makes an error.
func setReadDeadline(w http.ResponseWriter, t time.Time) {
	for {
		switch v := w.(type) {
		case interface{ SetReadDeadline(t time.Time) error }:
			_ = v.SetReadDeadline(t) // the connection is gone: reading will tell
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return
		}
	}
}

// isOwn reports whether reading ended before the body did, and without an error of the connection.
func isOwn(err error) bool {
	var own *failure
	var over *http.MaxBytesError
	return errors.As(err, &own) || errors.As(err, &over)
}

func (x *exchange) unreadable(err error, limit int64) error {
	var own *failure
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &over):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.ctx.expire()
		return x.ctx.timedOut("the body did not arrive")
	}
	return x.brokenOff(err)
}

// jsonType is the value of a header: never changed.
var jsonType = []string{"application/json"}

func isJSON(contentType string) bool {
	if contentType == jsonType[0] {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == jsonType[0]
}

func tooLarge(limit int64) error {
	return newFailure(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than the limit of %d bytes", limit))
}

// readStep is how much memory a client gets for no more than the announcement of a length, unless
// there is a buffer at hand.
const readStep = 4 << 10

// readAll reads to the end, or until there is more than limit. length is what was announced,
// or -1. Memory is reserved before it is used, that of buf too, as if it were new. There is never
// more than four times of what has come, or was announced if buf is of that size.
func readAll(from io.Reader, buf []byte, length, limit int64, reserve func(int64) error) ([]byte, error) {
	rest := func() int {
		if announced := length + 1 - int64(len(buf)); announced > 0 { // one byte more, to see the end
			return int(max(announced, 512))
		}
		return max(len(buf), 512)
	}
	if buf = buf[:0]; cap(buf) > max(4*rest(), readStep) {
		buf = nil // it would count for more than the body has
	}
	room := max(min(rest(), readStep), cap(buf))
	if err := reserve(int64(room)); err != nil {
		return nil, err
	}
	if cap(buf) < room {
		buf = make([]byte, 0, room)
	}
	for own := false; ; {
		n, err := from.Read(buf[len(buf):room])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF, int64(len(buf)) > limit:
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) == room:
			larger := roomFor(room+min(rest(), 3*room), 4*room)
			if err := reserve(int64(larger - room)); err != nil {
				return nil, err
			}
			grown := append(memoryOf(larger), buf...)
			if own {
				giveBack(buf)
			}
			buf, room, own = grown, larger, true
		}
	}
}

// write sends an answer and reports whether all of it is on its way, so that its memory can be
// used again: after an error, HTTP/2 may still be busy with it.
func write(w http.ResponseWriter, code int, body []byte) (sent bool) {
	header := w.Header()
	header["Content-Type"] = jsonType
	if len(body) >= 2048 { // the server finds out the length of less by itself
		header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	w.WriteHeader(code)
	_, err := w.Write(body)
	return err == nil // else the API server is gone: nobody to tell
}
