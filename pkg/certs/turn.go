// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A turn is one pass of reconciliation. The order matters: targets are read before the Secret, and
// written only if they have not changed since. So a turn never writes a caBundle that is older than
// the one it replaces.
type turn struct {
	began, looked time.Time // before and after the targets were read, with the monotonic reading
	targets       []observation
	stored        kube.Secret
	readAt        time.Time // before the Secret was read
	now           time.Time
	ahead         time.Duration // how far this clock is ahead of the server's, see cluster
	differ        error         // set if the clocks differ too much
	follows       bool          // this replica must not write: another one is elected, or none yet
	judged        time.Time     // for checking certificates: this clock's, or the API server's if they differ too much
}

// waits returns why nothing may be written in this turn, or nil.
func (t *turn) waits() error {
	if t.differ == nil && t.follows {
		return errors.New("this replica waits for the elected one to create it")
	}
	return t.differ
}

// validity returns the validity, without the skew, of a certificate created in this turn. The
// lifetime counts from the time at which this replica read the Secret: see endOfTrust.
func (t *turn) validity(lifetime time.Duration) (from, until time.Time) {
	from, until = t.now, t.readAt.Add(lifetime)
	if t.judged.Before(from) {
		from = t.judged
	}
	if other := t.judged.Add(lifetime); t.differ != nil && other.After(until) {
		until = other
	}
	return from, until
}

// An observation is a target as it was read and written in one turn.
type observation struct {
	target Target
	kube.TargetState
	bundles  [][]*x509.Certificate // the certificates of each entry
	err      error                 // from reading the target
	writeErr error
	written  bool // in this turn
}

func newObservation(target Target, state kube.TargetState, err error) observation {
	o := observation{target: target, TargetState: state, err: err}
	o.parseBundles()
	return o
}

func (o *observation) parseBundles() {
	o.bundles = nil
	for _, e := range o.Entries {
		o.bundles = append(o.bundles, parseBundle(e.Bundle))
	}
}

// setBundle records that this turn has written text to the caBundle of every entry.
func (o *observation) setBundle(text []byte) {
	for i := range o.Entries {
		o.Entries[i].Bundle = text
	}
	o.parseBundles()
	o.written = true
}

// needsNoBundle reports whether an error from reading a target means that the target calls no webhook now.
func needsNoBundle(err error) bool {
	return errors.Is(err, kube.ErrNoTarget) || errors.Is(err, kube.ErrNoBundle)
}

// isIgnored reports whether the target needs no caBundle of ours: it calls no webhook, or it belongs
// to another installation.
func (o *observation) isIgnored() bool {
	return needsNoBundle(o.err) || errors.Is(o.err, kube.ErrOtherOwner)
}

// trusts reports whether every caBundle of the target contains the certificate.
func (o *observation) trusts(c *x509.Certificate) bool {
	return !slices.ContainsFunc(o.bundles, func(bundle []*x509.Certificate) bool { return !slices.ContainsFunc(bundle, c.Equal) })
}

// equals reports whether every caBundle has exactly these certificates. The order does not matter:
// two sources of one target may write different orders.
func (o *observation) equals(want []*x509.Certificate) bool {
	for _, bundle := range o.bundles {
		if len(bundle) != len(want) || slices.ContainsFunc(want, func(c *x509.Certificate) bool { return !slices.ContainsFunc(bundle, c.Equal) }) {
			return false
		}
	}
	return true
}

// prefers reports whether some caBundle trusts signer and not issuer. The signer is the CA that signs
// now, the issuer signed the certificate being served.
func (o *observation) prefers(signer, issuer *x509.Certificate) bool {
	return slices.ContainsFunc(o.bundles, func(bundle []*x509.Certificate) bool {
		return slices.ContainsFunc(bundle, signer.Equal) && !slices.ContainsFunc(bundle, issuer.Equal)
	})
}

// verify returns why the API server does not trust this certificate when it calls the webhooks of
// the target, or nil. It returns nil if the target could not be read.
func (o *observation) verify(leaf *x509.Certificate, now time.Time) error {
	if o.err != nil {
		return nil
	}
	var errs []error
	for i := range o.Entries {
		if err := o.verifyEntry(i, leaf, now); err != nil {
			advice := ""
			if wrong := (x509.HostnameError{}); errors.As(err, &wrong) {
				advice = ": add the name to DNSNames or IPAddresses, or, if another server answers there, name the other webhooks in Target.Webhooks"
			}
			errs = append(errs, fmt.Errorf("%s does not trust the serving certificate: %w%s", o.entryName(i), err, advice))
		}
	}
	return errors.Join(errs...)
}

// verifyEntry verifies a certificate as the API server does.
func (o *observation) verifyEntry(i int, leaf *x509.Certificate, now time.Time) error {
	host := o.Entries[i].Host
	if host == "" {
		host = names{leaf.DNSNames, leaf.IPAddresses}.host()
	}
	roots := x509.NewCertPool()
	for _, c := range o.bundles[i] {
		roots.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now})
	return err
}

func (o *observation) entryName(i int) string {
	if name := o.Entries[i].Name; name != "" {
		return fmt.Sprintf("the caBundle of %s, webhook %s,", o.target, name)
	}
	return fmt.Sprintf("the caBundle of %s", o.target)
}
