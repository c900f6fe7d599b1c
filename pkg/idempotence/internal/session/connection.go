// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// A FailureCode is a reason why the webhook cannot be called.
type FailureCode string

// The codes. Reasons in a report have codes of the same names.
const (
	NoHandler            FailureCode = "NoHandler"
	UnknownHost          FailureCode = "UnknownHost"
	CertificateName      FailureCode = "CertificateName"
	CertificateInvalid   FailureCode = "CertificateInvalid"
	CertificateUntrusted FailureCode = "CertificateUntrusted"
	NotTLS               FailureCode = "NotTLS"
	HandshakeEnded       FailureCode = "HandshakeEnded"
	ConnectionRefused    FailureCode = "ConnectionRefused"
	NoConnection         FailureCode = "NoConnection"
	WrongPath            FailureCode = "WrongPath"
	APIServerFailed      FailureCode = "APIServerFailed"
)

// A Failure is an error that ends a run. It is not a fault of the webhook.
type Failure struct {
	Code FailureCode
	URL  string // of the webhook's server, if it has one
	Err  error
}

// A Connection records failures that end a run, such as an unreachable server. A run and its rivals share it.
type Connection struct {
	Failed   *Failure // there is nothing to test: no handler, or a server that never answered
	Lost     *Failure // a server responded at first, but does not any more
	Hung     bool     // no call was ever answered
	Repeated int      // calls made again because the connection broke
	Crashed  bool     // the server was lost after it broke the connection of a call
	LostOn   []byte   // the object of the last call of a server that was lost
	Slowest  SlowCall // the slowest call that was answered, if it was slow

	loop *loop // calls the handlers in this process; nil outside of Loop
}

// lostOn records the object of the call in which the server was lost.
func (c *Connection) lostOn(object []byte) {
	if c != nil && c.Lost != nil && c.LostOn == nil {
		c.LostOn = object
	}
}

// A SlowCall is a call that took at least the time slow.
type SlowCall struct {
	Took   time.Duration
	Object string
}

// slow is the minimum duration of a slow call.
const slow = time.Second

// timed records how long a call took, if it is the slowest of the slow calls.
func (c *Connection) timed(took time.Duration, k *objects.Kind, o *objects.Object) {
	if c != nil && o != nil && took >= slow && took > c.Slowest.Took {
		c.Slowest = SlowCall{took, k.Name() + " " + objects.NameOf(o)}
	}
}

// Ended reports whether the run must make no more calls.
func (c *Connection) Ended() bool { return c != nil && (c.Failed != nil || c.Lost != nil || c.Hung) }

// fail records an error that leaves nothing to test, unless an earlier one is recorded.
func (c *Connection) fail(code FailureCode, err error) {
	if c != nil && c.Failed == nil {
		c.Failed = &Failure{Code: code, Err: err}
	}
}

// cannotReach records that a server cannot be reached. answered is set if the server has responded before.
func (c *Connection) cannotReach(url string, code FailureCode, err error, answered bool) {
	switch failure := (&Failure{Code: code, URL: url, Err: err}); {
	case c == nil || c.Ended():
	case answered:
		c.Lost = failure
	default:
		c.Failed = failure
	}
}

// unreachableCode returns why a connection cannot be made, or an empty code for any other error.
func unreachableCode(err error) FailureCode {
	var (
		dns       *net.DNSError
		untrusted *tls.CertificateVerificationError
		notTLS    tls.RecordHeaderError
		network   *net.OpError
		alert     tls.AlertError
		invalid   x509.CertificateInvalidError
		hostname  x509.HostnameError
	)
	switch {
	case errors.As(err, &dns):
		return UnknownHost
	case errors.As(err, &hostname):
		return CertificateName
	case errors.As(err, &invalid):
		return CertificateInvalid
	case errors.As(err, &untrusted):
		return CertificateUntrusted
	case errors.As(err, &notTLS), strings.Contains(err.Error(), "HTTP response to HTTPS client"): // net/http has no type for it
		return NotTLS
	case errors.As(err, &alert), errors.As(err, &network) && network.Op == "remote error":
		return HandshakeEnded
	case errors.Is(err, syscall.ECONNREFUSED):
		return ConnectionRefused
	case errors.As(err, &network) && network.Op == "dial":
		return NoConnection
	}
	return ""
}

// connectionBroke reports whether a connection ended before the response, as when a server panics or restarts.
func connectionBroke(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), "server closed idle connection")
}
