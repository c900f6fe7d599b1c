// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Header values that are shared by all answers. They must not be changed.
var (
	jsonType        = []string{"application/json"}
	closeConnection = []string{"close"}
)

// CloseConnection makes the answer close its connection. With HTTP/2 the server sends GOAWAY.
func CloseConnection(w http.ResponseWriter) { w.Header()["Connection"] = closeConnection }

// Write sends an answer. It reports whether the memory of body can be reused: after an error,
// HTTP/2 may still be reading it.
func Write(w http.ResponseWriter, code int, body []byte) (sent bool) {
	header := w.Header()
	header["Content-Type"] = jsonType
	if len(body) >= 2048 { // net/http sets the length of smaller bodies
		header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	w.WriteHeader(code)
	_, err := w.Write(body)
	return err == nil // after an error the client is gone
}

// WriteStatus sends an API status.
func WriteStatus(w http.ResponseWriter, status metav1.Status) {
	Write(w, int(status.Code), Encode(status))
}

// Encode returns the JSON of an API status.
func Encode(status metav1.Status) []byte {
	body, _ := json.Marshal(status) // a Status always marshals
	return append(body, '\n')
}

// WriteTo sends an answer on a hijacked connection and closes the connection.
func WriteTo(conn net.Conn, code int, body []byte) {
	defer func() { _ = conn.Close() }()
	answer := http.Response{
		ProtoMajor: 1, ProtoMinor: 1, StatusCode: code, Close: true,
		Header:        http.Header{"Content-Type": jsonType},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_ = answer.Write(conn) // after an error the client is gone
}

// SetReadDeadline sets the read deadline of the connection, if w or a writer that w wraps
// supports it. net/http sets a new deadline for the next request. http.ResponseController would
// allocate an error if no writer supported it.
func SetReadDeadline(w http.ResponseWriter, t time.Time) {
	for {
		switch v := w.(type) {
		case interface{ SetReadDeadline(t time.Time) error }:
			_ = v.SetReadDeadline(t) // a failure shows in the next read
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return
		}
	}
}
