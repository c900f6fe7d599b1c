// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
)

// A Source provides the certificate that a webhook serves with. Its methods are safe for
// concurrent use.
//
// What a source once served it goes on serving until it has something better: a renewal that
// fails is reported by Status and in the log, never by a handshake.
type Source interface {
	// Start runs the source until ctx is done, and then returns nil. It returns an error at
	// once when there is nothing to serve and waiting will not help: a file that does not
	// parse, a Secret with foreign content. It may be called once.
	Start(ctx context.Context) error
	// GetCertificate is for the field of that name of a tls.Config. It never waits, and returns
	// an error as long as there is no certificate.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Bundle returns the PEM certificates that a client should trust now, several while a CA is
	// replaced. Empty when the source does not know, as with a file of no more than a pair.
	Bundle() []byte
	// Status tells what is served, and what is wrong.
	Status() Status
}

// A Status is the state of a [Source] at one moment.
type Status struct {
	// Err is what keeps the source from being well: a file that cannot be read, an expired
	// certificate, a caBundle that does not trust what is served. Nil when it is.
	Err error
	// NotBefore and NotAfter are those of the certificate that is served; zero without one.
	NotBefore, NotAfter time.Time
	// CANotAfter is when the CA that signed it ends; zero where the source does not know.
	CANotAfter time.Time
	// Phase is where a rotation of the CA stands: see the constants. Empty for sources that do
	// not rotate.
	Phase Phase
	// Rotations counts the CAs that this process has seen replaced, Renewals the certificates
	// that it has served, less the first.
	Rotations, Renewals int
	// Trusted tells whether every caBundle that the source looks after trusts what is served.
	// For [Files] and [Static], which look after none, it tells whether what is served is valid
	// now, and trusted by the CAs that they were given, if any.
	Trusted bool
	// ClockAhead is by how much this machine's clock is ahead of the API server's at least,
	// negative when it is behind. Zero when they agree as far as one can tell, and for sources that
	// have no API server. Options.ClockSkew says what there is room for.
	ClockAhead time.Duration
	// NotReady is why this replica should not be called, nil if it may: that it serves nothing
	// or nothing valid, that not every API server can know yet whom to trust, or that it is
	// behind the other replicas. What they all have in common, such as a caBundle that somebody
	// has emptied, takes none that was ready out of service.
	NotReady error
}

// A Phase is a step in the rotation of a CA.
type Phase string

// The phases, in their order.
const (
	Starting   Phase = "starting"   // no CA yet
	Stable     Phase = "stable"     // one CA, trusted everywhere
	Publishing Phase = "publishing" // a new CA goes into every caBundle, the old one signs
	Retiring   Phase = "retiring"   // the new CA signs, the old one is still trusted
)

// TLSConfig returns a server's configuration with the certificate of the source.
func TLSConfig(s Source) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.GetCertificate}
}

// Ready returns an error, that of [Status.NotReady], unless the source serves a certificate
// with which calls may come. It fits Options.Ready of package webhook, and a healthz check.
func Ready(s Source) func(context.Context) error {
	return func(context.Context) error {
		_, err := s.GetCertificate(&tls.ClientHelloInfo{})
		if err == nil {
			err = s.Status().NotReady
		}
		return err
	}
}

// contextLogger returns the logger of ctx, or slog's default.
func contextLogger(ctx context.Context) logr.Logger {
	if log, err := logr.FromContext(ctx); err == nil {
		return log
	}
	return logr.FromSlogHandler(slog.Default().Handler())
}
