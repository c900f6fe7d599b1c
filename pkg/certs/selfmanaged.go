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

// A SelfManaged source creates the certificates itself. All replicas share the CA in one Secret. Each replica signs its own
// serving certificate, which stays in its memory. The source writes the CA into the caBundle of its targets, and replaces
// it in an order in which no call fails:
//
//  1. publish: a new CA is added to the Secret, and to every caBundle beside the old one;
//  2. sign: when a replica has found the new CA in every caBundle for Options.Settle, the new CA signs, and the key of
//     the old CA is deleted;
//  3. retire: when every certificate of the old CA has expired, that CA is removed.
//
// Every replica takes any step that is due. It changes the Secret only by compare-and-swap, and a caBundle only if it is
// the one that was read before the Secret. So a replica with an old view cannot revert a step of another replica.
//
// If the Secret is deleted, emptied or damaged, a replica writes it again from its memory. To replace a CA at once, add
// a key named "rotate" with any value to the Secret. A foreign CA in a caBundle stays trusted for one LeafLifetime, so
// that webhooks can move from cert-manager to this source under traffic. The CA of another SelfManaged source stays
// until that source removes it, or until it expires.
type SelfManaged struct {
	o       Options
	policy  policy
	cluster cluster
	clock   func() time.Time // see wallClock
	start   atomic.Bool
	served  atomic.Pointer[tls.Certificate]

	log logr.Logger // set before the first turn of Start

	mu     sync.Mutex // guards the next fields; never held during a request
	names  names
	state  *state // the last state in the Secret; nil before the first turn
	issuer *x509.Certificate
	renew  time.Time // when the served certificate is old enough to be replaced
	status Status

	seen history // used only by the goroutine of Start
}

// NewSelfManaged returns a source. The error lists everything that is wrong with the options. NewSelfManaged sends no
// request; Start does.
func NewSelfManaged(o Options) (*SelfManaged, error) {
	o, err := o.completed()
	if o.Config == nil {
		err = errors.Join(errors.New("Config is nil: set it to the client configuration for the API server"), err)
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

// NeedLeaderElection returns false, so that a controller-runtime manager starts the source on every replica: see
// Options.Elected.
func (s *SelfManaged) NeedLeaderElection() bool { return false }

// GetCertificate returns the serving certificate of this replica, whatever name the client asks for. It returns an
// error if there is no certificate yet.
func (s *SelfManaged) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.served.Load(); c != nil {
		return c, nil
	}
	if err := s.Status().Err; err != nil {
		return nil, fmt.Errorf("there is no serving certificate yet: %w", err)
	}
	return nil, errNotStarted
}

// Bundle returns the CAs that clients must trust, as this replica last read them.
func (s *SelfManaged) Bundle() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return nil
	}
	return bundle(s.state.trusted())
}

// Status returns the validity of the serving certificate, the progress of a rotation, and what is wrong.
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

// SetNames replaces Options.DNSNames and Options.IPAddresses. A certificate for them is served
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

// wallClock returns the time of day without the monotonic reading of time.Now. So the suspension of a machine does not make
// certificates live longer.
func wallClock() time.Time { return time.Now().Round(0) }
