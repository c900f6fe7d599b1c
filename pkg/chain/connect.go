// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
)

// Connect returns an engine that sends its requests to a real API server on this machine, one
// that can reach a port on loopback. The user of config has to be allowed to impersonate users
// and to do what is described here: system:masters is.
//
// The configurations are registered under their names, with a proxy as the address of every
// webhook and with one match condition more, which keeps all requests but those of the engine
// away from it: nobody else who uses the API server notices the webhooks. The proxy calls the
// handlers, or the addresses in the configurations, and notes what is said. Requests are told
// apart by an entry in the extra of the impersonated user, which the proxy takes out of what
// webhooks get.
//
// A request with DryRun is sent as a dry run. One without is done: the object is stored for a
// moment and then removed, and what runs beside the API server can see it, such as a scheduler.
// An UPDATE or DELETE needs the old object on the API server, so that is stored first,
// by the engine itself and unseen by the webhooks, and removed afterwards, dry run or not. An
// object that was there before is never changed or removed: it makes Admit fail. Requests for
// one object wait for each other.
//
// Namespaces are made when a request is in one that does not exist. Close removes them again,
// with the custom resource definitions and the configurations. What an engine left behind
// whose process was killed is removed by the next Connect, except objects in namespaces, or of
// kinds, that were not made by an engine.
func Connect(config *rest.Config, w Webhooks, o ConnectOptions) (Engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	s := &serverEngine{id: newEngineID(), crds: o.CRDs}
	s.namespaces.engine, s.discovery.engine = s, s
	s.namespaces.declared = o.Namespaces
	if o.AuditLog != "" {
		s.audit = newAuditLog(o.AuditLog)
	}
	var err error
	if s.api, err = newAPI(config); err != nil {
		return nil, err
	}
	if s.proxy, err = newProxy(s.api); err != nil {
		return nil, err
	}
	if err := s.open(ctx, w); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot register the webhooks: %w", err), s.Close())
	}
	return s, nil
}

// connectTimeout bounds how long Connect and Close wait for the API server.
const connectTimeout = 2 * time.Minute

// A serverEngine is the engine that Connect returns.
type serverEngine struct {
	id         string // of this engine, in all that it makes
	api        *api
	proxy      *proxy
	audit      *auditLog // nil without
	crds       []*apiextensionsv1.CustomResourceDefinition
	installed  []string // names of crds
	namespaces namespaces
	discovery  discovery
	objects    keyedLocks
	requests   atomic.Int64
	foreign    []string // webhooks of others
	explainer  *Chain   // says why webhooks are not called

	closing   sync.RWMutex // read-locked by each Admit
	closed    bool
	closeOnce sync.Once
	closeErr  error
}

func newEngineID() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// open makes everything that requests need.
func (s *serverEngine) open(ctx context.Context, w Webhooks) error {
	if err := s.removeStale(ctx); err != nil {
		return err
	}
	if err := s.explain(w); err != nil {
		return err
	}
	if err := s.register(ctx, w); err != nil {
		return err
	}
	if err := s.installCRDs(ctx); err != nil {
		return err
	}
	if err := s.namespaces.makeDeclared(ctx); err != nil {
		return err
	}
	return s.awaitEnforced(ctx)
}

// Close waits for requests in flight and removes what the engine made.
func (s *serverEngine) Close() error {
	s.closeOnce.Do(func() {
		s.closing.Lock()
		s.closed = true
		s.closing.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		s.closeErr = errors.Join(
			s.namespaces.removeAll(ctx),
			s.removeCRDs(ctx),
			s.unregister(ctx), // last: its entries tell that the engine is alive
			s.proxy.close(),
			s.audit.close(),
		)
		s.api.close()
	})
	return s.closeErr
}

// errClosed is returned once the engine is closed.
var errClosed = errors.New("the engine is closed")
