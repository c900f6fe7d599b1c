// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// trouble is what ends a run and is no fault of the webhook's answers. A run and its rivals share it.
type trouble struct {
	// err says why there is nothing to test: the handler cannot be made, the server never answered.
	err error
	// lost says which server answered once and does so no more.
	lost error
	// hung is there where no call was ever answered.
	hung bool
	// repeats is how many calls were made again because the connection broke.
	repeats int
}

// ends reports whether no more calls are to be made.
func (t *trouble) ends() bool { return t != nil && (t.err != nil || t.lost != nil || t.hung) }

// cannotReach notes that there is no connection to a server.
func (t *trouble) cannotReach(url, hint string, err error, answered bool) {
	switch err := fmt.Errorf("%s cannot be reached: %w (%s)", url, err, hint); {
	case t == nil || t.ends():
	case answered:
		t.lost = err
	default:
		t.err = err
	}
}

// hintFor says what to look at when a connection cannot be made. It is empty where an error
// is no such thing.
func hintFor(err error) string {
	var (
		name     *net.DNSError
		refused  *tls.CertificateVerificationError
		plain    tls.RecordHeaderError
		operated *net.OpError
		alert    tls.AlertError
		expired  x509.CertificateInvalidError
		other    x509.HostnameError
	)
	switch {
	case errors.As(err, &name):
		return "the name is not known on this machine: a Service has a name in its cluster only"
	case errors.As(err, &other):
		return "its certificate is for other names: call it by one of them, or set ServerName in the client's tls.Config"
	case errors.As(err, &expired):
		return "its certificate is not valid: look at its dates and uses"
	case errors.As(err, &refused):
		return "its certificate is not trusted: give URL a client with the caBundle as RootCAs in its tls.Config"
	case errors.As(err, &plain), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "it does not speak TLS: is the port right, or is it http://?"
	case errors.As(err, &alert), errors.As(err, &operated) && operated.Op == "remote error":
		return "it ends the TLS handshake: does it want a client certificate?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: is the server running, is the port right?"
	case errors.As(err, &operated) && operated.Op == "dial":
		return "there is no connection: is the address right, and is there a way to it?"
	}
	return ""
}

// brokeOff reports whether a connection ended before there was an answer. A server that panics
// does that, and so does one that is restarted.
func brokeOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), "server closed idle connection")
}
