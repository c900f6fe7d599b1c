// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// An observed target is what was read of one in a turn, and what came of writing it.
type observed struct {
	target Target
	targetState
	err      error // of reading
	writeErr error
	dirty    bool // it was written in this turn
}

// leftAlone tells whether the target needs no caBundle of ours: it calls nobody, or it is somebody
// else's.
func (o *observed) leftAlone() bool { return callsNobody(o.err) || errors.Is(o.err, errOthers) }

// hasAll tells whether every caBundle of the target has the certificate.
func (o *observed) hasAll(c *x509.Certificate) bool {
	for i := range o.entries {
		if !slices.ContainsFunc(o.entries[i].certificates(), c.Equal) {
			return false
		}
	}
	return true
}

// holds tells whether every caBundle has these certificates and no others, in any order: two
// that look after one target need not agree on that.
func (o *observed) holds(want []*x509.Certificate) bool {
	for i := range o.entries {
		got := o.entries[i].certificates()
		if len(got) != len(want) || slices.ContainsFunc(want, func(c *x509.Certificate) bool { return !slices.ContainsFunc(got, c.Equal) }) {
			return false
		}
	}
	return true
}

// certificates returns what is in the bundle, and reads it once.
func (e *targetEntry) certificates() []*x509.Certificate {
	if e.parsed == nil && len(e.bundle) > 0 {
		e.parsed = parseBundle(e.bundle)
	}
	return e.parsed
}

// verify checks a certificate as the API server does, and returns what it says.
func (e *targetEntry) verify(leaf *x509.Certificate, now time.Time) error {
	host := e.host
	if host == "" {
		host = names{leaf.DNSNames, leaf.IPAddresses}.host()
	}
	roots := x509.NewCertPool()
	for _, c := range e.certificates() {
		roots.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now})
	return err
}

// trust returns why calls by the target fail, or nil. What could not be read says nothing.
func (o *observed) trust(leaf *x509.Certificate, now time.Time) error {
	if o.err != nil {
		return nil
	}
	var errs []error
	for i := range o.entries {
		if err := o.entries[i].verify(leaf, now); err != nil {
			advice := ""
			if wrong := (x509.HostnameError{}); errors.As(err, &wrong) {
				advice = ": add the name to DNSNames or IPAddresses, or, if another server answers there, name the other webhooks in Target.Webhooks"
			}
			errs = append(errs, fmt.Errorf("%s does not trust what is served: %w%s", o.entryName(i), err, advice))
		}
	}
	return errors.Join(errs...)
}

func (o *observed) entryName(i int) string {
	if name := o.entries[i].name; name != "" {
		return fmt.Sprintf("the caBundle of %s, webhook %s,", o.target, name)
	}
	return fmt.Sprintf("the caBundle of %s", o.target)
}

// prefers tells whether some caBundle trusts one CA, which signs now, and not the other, which
// signed what is served.
func (o *observed) prefers(signer, issuer *x509.Certificate) bool {
	for i := range o.entries {
		all := o.entries[i].certificates()
		if slices.ContainsFunc(all, signer.Equal) && !slices.ContainsFunc(all, issuer.Equal) {
			return true
		}
	}
	return false
}
