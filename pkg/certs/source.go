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
// A source serves a certificate until it has a better one. It reports a failed renewal in Status and
// in the log, and continues to serve.
type Source interface {
	// Start runs the source until ctx is done, and then returns nil. It returns an error at once if
	// there is no certificate to serve and waiting will not help: a file does not parse, or the
	// Secret has foreign content. It must be called only once.
	Start(ctx context.Context) error
	// GetCertificate is for the field GetCertificate of a tls.Config. It never blocks. It returns an
	// error as long as there is no certificate.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Bundle returns the PEM certificates that a client should trust now: several while a CA is
	// replaced, none if the source does not know its CA.
	Bundle() []byte
	// Status returns what is served, and what is wrong.
	Status() Status
}

// A Status is the state of a [Source] at one moment.
type Status struct {
	// Err needs attention: a file cannot be read, the certificate has expired, or a caBundle does not
	// trust the serving certificate. Nil means that nothing is wrong.
	Err error
	// NotBefore and NotAfter are the validity of the serving certificate; zero if there is none.
	NotBefore, NotAfter time.Time
	// CANotAfter is when the CA of the serving certificate expires; zero if the source does not know the CA.
	CANotAfter time.Time
	// Phase is the step of the CA's rotation. Empty for sources that do not rotate.
	Phase Phase
	// Rotations counts how often this process changed to another CA. Renewals counts how often it
	// changed to another serving certificate.
	Rotations, Renewals int
	// Trusted reports whether every target's caBundle trusts the serving certificate. [Files] and
	// [Static] have no targets: they report whether the certificate is valid now, and trusted by
	// their CAs if they have any.
	Trusted bool
	// ClockAhead is the least difference by which this machine's clock is ahead of the API server's.
	// It is negative if the clock is behind, and zero if the two may agree or the source uses no API
	// server. Options.ClockSkew is the tolerated difference.
	ClockAhead time.Duration
	// NotReady is why this replica should receive no calls; nil if it may. It has no valid
	// certificate, or not every API server can trust it yet, or it is behind the other replicas. A
	// problem that all replicas share, such as an emptied caBundle, does not make a replica unready
	// that was ready before.
	NotReady error
}

// A Phase is a step in the rotation of a CA.
type Phase string

// The phases, in their order.
const (
	Starting   Phase = "starting"   // no CA yet
	Stable     Phase = "stable"     // one CA, trusted everywhere
	Publishing Phase = "publishing" // a new CA is written to every caBundle, and the old one signs
	Retiring   Phase = "retiring"   // the new CA signs, and the old one is still trusted
)

// TLSConfig returns a server configuration that serves the certificate of the source.
func TLSConfig(s Source) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.GetCertificate}
}

// Ready returns a function that returns [Status.NotReady], or an error if the source has no
// certificate. It fits Options.Ready of package webhook, and a healthz check.
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
