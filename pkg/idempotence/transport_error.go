// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// transportError records an error that ends a run, such as an unreachable server. It is not the webhook's fault. A run and
// its rivals share it.
type transportError struct {
	// err says why there is nothing to test: the handler cannot be made, the server never answered.
	err *Error
	// lost says which server answered once and does so no more.
	lost *Error
	// hung is there where no call was ever answered.
	hung bool
	// repeats is how many calls were made again because the connection broke.
	repeats int
}

// ends reports whether the run must make no more calls.
func (t *transportError) ends() bool { return t != nil && (t.err != nil || t.lost != nil || t.hung) }

// cannotReach records that a server cannot be reached.
func (t *transportError) cannotReach(url string, code ReasonCode, err error, answered bool) {
	switch err := (&Error{Reason: Reason{Code: code, URL: url, Detail: err.Error()}, cause: err}); {
	case t == nil || t.ends():
	case answered:
		t.lost = err
	default:
		t.err = err
	}
}

// unreachableCode returns why a connection cannot be made, or an empty code for any other error.
func unreachableCode(err error) ReasonCode {
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
		return ReasonUnknownHost
	case errors.As(err, &other):
		return ReasonCertificateName
	case errors.As(err, &expired):
		return ReasonCertificateInvalid
	case errors.As(err, &refused):
		return ReasonCertificateUntrusted
	case errors.As(err, &plain), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return ReasonNotTLS
	case errors.As(err, &alert), errors.As(err, &operated) && operated.Op == "remote error":
		return ReasonHandshakeEnded
	case errors.Is(err, syscall.ECONNREFUSED):
		return ReasonConnectionRefused
	case errors.As(err, &operated) && operated.Op == "dial":
		return ReasonNoConnection
	}
	return ""
}

// brokeOff reports whether a connection ended before the response, as when a server panics or restarts.
func brokeOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), "server closed idle connection")
}

// apiServerFailed returns the error of a run whose API server cannot be used.
func apiServerFailed(err error) *Error {
	return &Error{Reason: Reason{Code: ReasonAPIServerFailed, Detail: err.Error()}, cause: err}
}
