// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A SelfManaged source makes the certificates itself. The CA lives in one Secret that all
// replicas share; each replica signs its own serving certificate, which never leaves its
// memory. The source writes the CA into the caBundle of its targets, and replaces it in an
// order in which no call fails:
//
//  1. publish: a new CA goes into the Secret, and into every caBundle beside the old one;
//  2. once a replica has seen it in every caBundle for the time of Options.Settle, it signs,
//     and the key of the old one is deleted;
//  3. retire: once every certificate of the old one has expired, it is removed.
//
// Every replica takes any step that is due. The Secret is only changed by compare-and-swap, and
// a caBundle only if it is the one that was read before the Secret: so a replica with a stale
// view, however stale, cannot take back a step of another.
//
// A Secret that is deleted, emptied or damaged is filled again from the memory of a replica. To
// replace a CA at once, put a key named "rotate" into the Secret, with any value. A CA made by
// somebody else that is found in a caBundle stays trusted for one LeafLifetime, so that
// webhooks can move here from cert-manager under traffic; that of another such source stays until
// that source takes it out, or it ends.
type SelfManaged struct {
	o       Options
	policy  policy
	cluster cluster
	clock   func() time.Time // see wallClock
	start   atomic.Bool
	served  atomic.Pointer[tls.Certificate]

	log logr.Logger // set before Start begins to look

	mu     sync.Mutex // guards what follows; never held while the cluster is asked
	names  names
	state  *state // as it was last in the Secret; nil at first
	issuer *x509.Certificate
	renew  time.Time // when the certificate that is served is to be replaced for its age
	status Status

	seen history // used by Start's goroutine only
}

// NewSelfManaged returns a source. The error lists everything that is wrong with the options. It sends no request; Start
// does.
func NewSelfManaged(o Options) (*SelfManaged, error) {
	o, err := o.completed()
	if o.Config == nil {
		err = errors.Join(errors.New("Config is nil: it says how to reach the API server"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("self-managed certificates: %w", err)
	}
	c, err := kube.New(o.Config, wallClock, o.Namespace, o.Secret, o.FieldManager)
	if err != nil {
		return nil, fmt.Errorf("self-managed certificates: %w", err)
	}
	return newSelfManaged(o, c), nil
}

func newSelfManaged(o Options, c cluster) *SelfManaged {
	return &SelfManaged{
		o: o, policy: o.policy(), cluster: c, clock: wallClock, log: o.Logger,
		names:  names{o.DNSNames, o.IPAddresses},
		status: Status{Phase: Starting, NotReady: errNotStarted},
	}
}

// NeedLeaderElection tells a controller-runtime manager that every replica needs its
// certificate: see Options.Elected.
func (s *SelfManaged) NeedLeaderElection() bool { return false }

// GetCertificate returns the serving certificate of this replica, for any name.
func (s *SelfManaged) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.served.Load(); c != nil {
		return c, nil
	}
	if err := s.Status().Err; err != nil {
		return nil, fmt.Errorf("there is no serving certificate yet: %w", err)
	}
	return nil, errNotStarted
}

// Bundle returns the CAs to trust now, as this replica last read them.
func (s *SelfManaged) Bundle() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return nil
	}
	return bundle(s.state.trusted())
}

// Status returns the served certificate and the progress of a rotation.
func (s *SelfManaged) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	if c := s.served.Load(); c != nil {
		st.NotBefore, st.NotAfter = c.Leaf.NotBefore, c.Leaf.NotAfter
		now := s.clock()
		if s.policy.exceedsSkew(st.ClockAhead) {
			now = now.Add(-st.ClockAhead)
		}
		if ended := expired(c.Leaf, now); ended != nil {
			st.Err, st.NotReady, st.Trusted = errors.Join(ended, st.Err), ended, false
		}
	}
	return st
}

// SetNames replaces Options.DNSNames and Options.IPAddresses. A certificate for them is made
// within Options.Interval.
func (s *SelfManaged) SetNames(dns []string, ips []net.IP) error {
	n := names{slices.Clone(dns), slices.Clone(ips)}
	if err := n.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = n
	return nil
}

// wallClock is the time of the day. Without the monotonic reading that time.Now carries, a
// suspended machine does not make certificates live longer.
func wallClock() time.Time { return time.Now().Round(0) }
