// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"log"
	"strings"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/textutil"
)

// The classes of TLS handshakes that failed, for [ConnectionObserver.HandshakeFailed].
const (
	handshakeProbe     = "probe"              // the client went away: a port that is looked at
	handshakePlaintext = "plaintext"          // the client does not speak TLS
	handshakeUntrusted = "untrusted"          // the client does not trust the certificate
	handshakeTimeout   = "timeout"            // the client was too slow
	handshakeVersion   = "version"            // there is no common version, cipher suite or protocol
	handshakeClient    = "client_certificate" // the client's certificate will not do
	handshakeNoCert    = "no_certificate"     // the server has none yet
	handshakeOther     = "other"
)

// noCertificate begins the error of a handshake for which there was no certificate.
const noCertificate = "there is no certificate to serve"

// handshakeClasses are known by what net/http and crypto/tls say. The first that fits counts.
var handshakeClasses = []struct {
	class string
	words []string
}{
	{handshakeNoCert, []string{noCertificate, "no certificates configured", "unrecognized name"}},
	{handshakeUntrusted, []string{
		"remote error: tls: bad certificate", "remote error: tls: unknown certificate", // and: … authority
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

// A connectionLog takes the lines that net/http writes of connections. Most are noise that any
// port has; some say why no call arrives.
type connectionLog struct {
	log       logr.Logger
	observers []ConnectionObserver

	untrusted, none, accept, other sparingly
}

func newConnectionLog(l logr.Logger, observers []Observer) *connectionLog {
	c := &connectionLog{log: l}
	for _, o := range observers {
		if o, ok := o.(ConnectionObserver); ok {
			c.observers = append(c.observers, o)
		}
	}
	return c
}

func (c *connectionLog) logger() *log.Logger { return log.New(c, "", 0) }

// Write takes one line.
func (c *connectionLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		from, reason, _ := strings.Cut(rest, ": ")
		c.handshake(from, reason)
		return len(line), nil
	}
	switch {
	case strings.HasPrefix(text, "http: Accept error"):
		c.accept.log(c.log, errors.New(textutil.Clip(text, maxMessageBytes)), "cannot take connections; is there a limit of open files?")
	case strings.HasPrefix(text, "http: panic serving"):
		c.log.Error(errors.New(text), "the webhook server panicked; that is a bug of it, or of an observer or middleware")
	default:
		c.log.V(1).Info("http server", "message", textutil.Clip(text, maxMessageBytes))
	}
	return len(line), nil
}

func (c *connectionLog) handshake(from, reason string) {
	class := handshakeClass(reason)
	for _, o := range c.observers {
		func() {
			defer survive(logr.NewContext(context.Background(), c.log))
			o.HandshakeFailed(class)
		}()
	}
	values := []any{"class", class, "remote", from}
	err := errors.New(textutil.Clip(reason, maxMessageBytes))
	switch class {
	case handshakeUntrusted:
		c.untrusted.log(c.log, err, "a client does not trust the serving certificate; if it is the API server, no call arrives: "+
			"put the CA that signed the certificate into the caBundle of the webhook configurations, and see that the certificate is for the name <service>.<namespace>.svc", values...)
	case handshakeNoCert:
		c.none.log(c.log, err, "a client had to be sent away, since there is no certificate yet", values...)
	case handshakeOther, handshakeClient:
		c.other.log(c.log, err, "a TLS handshake failed", values...)
	default:
		c.log.V(1).Info("a TLS handshake failed", append(values, "reason", err.Error())...)
	}
}
