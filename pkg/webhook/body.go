// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
	"github.com/admitkit/admitkit/pkg/webhook/internal/server"
)

// readBody checks the headers, then reads at most limit bytes until the deadline of the call. It
// uses the memory of buf if it can.
func (x *exchange) readBody(w http.ResponseWriter, r *http.Request, reading *server.Reading, buf []byte, limit int64) ([]byte, error) {
	if err := checkHeaders(w, r); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	var from io.Reader = r.Body
	if r.ContentLength < 0 { // MaxBytesReader also makes net/http close the connection
		from = http.MaxBytesReader(w, r.Body, limit)
	}
	deadline, _ := x.ctx.Deadline()
	reply.SetReadDeadline(w, deadline)
	data, evicted, err := x.place.Read(reading, w, from, buf, r.ContentLength, limit)
	complete := err == nil && int64(len(data)) <= limit
	if x.client.rest != noRest {
		x.client.rest = restAfter(complete, evicted, err)
	}
	switch {
	case evicted:
		reply.SetReadDeadline(w, time.Time{})
		if x.client.http1 {
			reply.CloseConnection(w)
		}
		return nil, x.tooSlow()
	case err != nil:
		return nil, x.unreadable(err, limit)
	case !complete:
		return nil, tooLarge(limit)
	case len(data) == 0:
		return nil, reply.New(http.StatusBadRequest, "the body is empty: want an AdmissionReview")
	}
	// While the handler runs, net/http reads from the connection to notice that the API server hangs up. An
	// expired read deadline would look the same to it.
	reply.SetReadDeadline(w, time.Time{})
	return data, nil
}

// checkHeaders checks everything that can be checked before the body is read.
func checkHeaders(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return reply.New(http.StatusMethodNotAllowed, fmt.Sprintf("method %s: an AdmissionReview is sent by POST", r.Method))
	}
	if ct := r.Header.Get("Content-Type"); !isJSON(ct) {
		return reply.New(http.StatusUnsupportedMediaType, fmt.Sprintf("content type %q: want application/json", ct))
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return reply.New(http.StatusUnsupportedMediaType, fmt.Sprintf("content encoding %q: the body must not be encoded", enc))
	}
	return nil
}

// restAfter returns what to do with the rest of a body once reading has stopped. After a
// connection error there is no rest.
func restAfter(complete, evicted bool, err error) restOfBody {
	var overload *server.Overload
	var tooLarge *http.MaxBytesError
	switch {
	case complete:
		return noRest
	case evicted:
		return restEvicted
	case err == nil, errors.As(err, &overload), errors.As(err, &tooLarge):
		return restThenClose
	}
	return noRest
}

// unreadable returns the failure of a call whose body could not be read because of err.
func (x *exchange) unreadable(err error, limit int64) error {
	var overload *server.Overload
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &overload):
		return x.turnAway(err)
	case errors.As(err, &over):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.ctx.Expire()
		return x.ctx.TimedOut("the body did not arrive")
	}
	return x.incompleteBody(err)
}

const jsonType = "application/json"

func isJSON(contentType string) bool {
	if contentType == jsonType {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == jsonType
}

func tooLarge(limit int64) error {
	return reply.New(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than the limit of %d bytes", limit))
}

// keepConnection keeps the connection of a call that failed with err, if the API server repeats the
// call and the rest of its body is small.
func (x *exchange) keepConnection(r *http.Request, err error) {
	if x.client.rest == restThenClose && outcomeOf(err) == Shed && reply.CanKeep(r) {
		x.client.rest = restThenNext
	}
}

// discardRest reads and drops the rest of the body after the answer, as x.client.rest says.
func (x *exchange) discardRest(w http.ResponseWriter, r *http.Request) {
	switch x.client.rest {
	case noRest:
	case restThenNext:
		x.client.conn.Discard(w, r)
	case restEvicted:
		reply.Discard(w, r, reply.DiscardUntimely)
	case restThenClose:
		reply.Discard(w, r, reply.DiscardLast)
	}
}
