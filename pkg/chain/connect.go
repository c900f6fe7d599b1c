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

// Connect returns an engine that sends requests to a real API server. The API server must be able to reach a loopback
// port of this machine. The user of config must be allowed to impersonate users and to create the objects described
// below. A member of system:masters may do both.
//
// Connect registers the configurations under their names. Every webhook gets the address of a proxy and one more
// matchCondition, so that only requests of this engine reach it and other users of the API server are not affected.
// The proxy calls the handlers, or the addresses in the configurations, and records the calls. It identifies requests
// by an entry in the extra of the impersonated user, and removes that entry from what webhooks receive.
//
// A request with DryRun is sent as a dry run. Without DryRun, the object is stored and then deleted, and other clients
// such as a scheduler can see it meanwhile. UPDATE and DELETE need a stored object. The engine stores the old object
// first, without calling the webhooks, and deletes it afterwards, also for a dry run. Admit fails if the object already
// exists on the API server: the engine never changes or deletes an object that it did not create. Requests for one
// object are serialized.
//
// The engine creates missing namespaces. Close deletes them, the CustomResourceDefinitions and the configurations. If
// the process was killed, the next Connect deletes what was left, except objects in namespaces or of kinds that no engine
// created.
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

// Close waits for running requests and deletes everything that the engine created.
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
