// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"log"
	"strings"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/webhook/internal/ratelog"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// The classes of failed TLS handshakes, for webhook.ConnectionObserver.
const (
	handshakeProbe     = "probe"              // the client went away, as a port scanner does
	handshakePlaintext = "plaintext"          // the client does not speak TLS
	handshakeUntrusted = "untrusted"          // the client does not trust the certificate
	handshakeTimeout   = "timeout"            // the client was too slow
	handshakeVersion   = "version"            // there is no common version, cipher suite or protocol
	handshakeClient    = "client_certificate" // the client's certificate is missing or not valid
	handshakeNoCert    = "no_certificate"     // the server has no certificate yet
	handshakeOther     = "other"
)

// NoCertificate is the beginning of the error of a handshake for which the server has no certificate.
const NoCertificate = "there is no certificate to serve"

// handshakeClasses classifies a failed handshake by words in the errors of net/http and crypto/tls. The first match
// wins.
var handshakeClasses = []struct {
	class string
	words []string
}{
	{handshakeNoCert, []string{NoCertificate, "no certificates configured", "unrecognized name"}},
	{handshakeUntrusted, []string{
		"remote error: tls: bad certificate", "remote error: tls: unknown certificate", // also matches "unknown certificate authority"
		"remote error: tls: expired certificate", "remote error: tls: unsupported certificate", "remote error: tls: revoked certificate",
	}},
	{handshakeClient, []string{"client didn't provide a certificate", "failed to verify certificate", "invalid signature by the client certificate"}},
	{handshakePlaintext, []string{"client sent an HTTP request to an HTTPS server", "first record does not look like a TLS handshake", "unsupported SSLv2 handshake"}},
	{handshakeTimeout, []string{"i/o timeout", "deadline exceeded"}},
	{handshakeVersion, []string{
		"unsupported versions", "protocol version not supported", "no cipher suite supported", "unsupported application protocols",
		"no application protocol", "remote error: tls: handshake failure", "no mutually supported", "inappropriate fallback",
	}},
	{handshakeProbe, []string{"EOF", "connection reset by peer", "broken pipe", "use of closed network connection", "closed pipe", "connection timed out"}},
}

func handshakeClass(reason string) string {
	for _, c := range handshakeClasses {
		for _, words := range c.words {
			if strings.Contains(reason, words) {
				return c.class
			}
		}
	}
	return handshakeOther
}

// A connectionLog filters the lines that net/http logs about connections. Most are noise, such as those that port
// scanners cause. Some explain why no call arrives.
type connectionLog struct {
	log                                     logr.Logger
	observe                                 func(class string)
	untrusted, noCertificate, accept, other ratelog.Logger
}

// NewConnectionLog returns an ErrorLog for an http.Server. observe is called for each TLS handshake
// that failed.
func NewConnectionLog(l logr.Logger, observe func(class string)) *log.Logger {
	return log.New(&connectionLog{log: l, observe: observe}, "", 0)
}

// Write classifies one line of net/http's error log, and logs or drops it.
func (c *connectionLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		from, reason, _ := strings.Cut(rest, ": ")
		c.handshake(from, reason)
		return len(line), nil
	}
	switch {
	case strings.HasPrefix(text, "http: Accept error"):
		c.accept.Error(c.log, errors.New(textutil.Clip(text, reply.MaxMessageBytes)), "cannot accept connections; check the limit of open files")
	case strings.HasPrefix(text, "http: panic serving"):
		c.log.Error(errors.New(text), "the webhook server panicked; this is a bug in the server, an observer or middleware")
	default:
		c.log.V(1).Info("http server", "message", textutil.Clip(text, reply.MaxMessageBytes))
	}
	return len(line), nil
}

func (c *connectionLog) handshake(from, reason string) {
	class := handshakeClass(reason)
	c.observe(class)
	values := []any{"class", class, "remote", from}
	err := errors.New(textutil.Clip(reason, reply.MaxMessageBytes))
	switch class {
	case handshakeUntrusted:
		c.untrusted.Error(c.log, err, "a client does not trust the serving certificate; if it is the API server, no call arrives: "+
			"put the CA that signed the certificate into the caBundle of the webhook configurations, and check that the certificate is for the name <service>.<namespace>.svc", values...)
	case handshakeNoCert:
		c.noCertificate.Error(c.log, err, "refused a connection: the server has no certificate yet", values...)
	case handshakeOther, handshakeClient:
		c.other.Error(c.log, err, "a TLS handshake failed", values...)
	default:
		c.log.V(1).Info("a TLS handshake failed", append(values, "reason", err.Error())...)
	}
}
