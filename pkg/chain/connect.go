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

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/keyedlock"
	"github.com/admitkit/admitkit/pkg/chain/internal/realserver"
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
// the process was killed, the next Connect deletes these leftovers. It does not delete the objects that requests had
// stored, except those in a deleted namespace or of a deleted CustomResourceDefinition.
func Connect(config *rest.Config, w Webhooks, o ConnectOptions) (Engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	s := &serverEngine{callsOnly: o.CallsOnly}
	if o.AuditLog != "" {
		s.audit = realserver.NewAuditLog(o.AuditLog)
	}
	var err error
	if s.server, err = realserver.NewServer(config, inprocess.DefaultManager, newEngineID(), o.Namespaces); err != nil {
		return nil, err
	}
	if err := s.open(ctx, w, o.CRDs); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot register the webhooks: %w", err), s.Close())
	}
	return s, nil
}

// connectTimeout bounds how long Connect and Close wait for the API server.
const connectTimeout = 2 * time.Minute

// A serverEngine is the engine that Connect returns.
type serverEngine struct {
	server    *realserver.Server
	audit     *realserver.AuditLog // nil without an audit log
	objects   keyedlock.Locks      // serializes the requests for one object, by its path
	requests  atomic.Int64
	explainer *Chain // explains why webhooks are not called
	callsOnly bool   // see ConnectOptions

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

// open registers the webhooks, and creates the CustomResourceDefinitions and the namespaces.
func (s *serverEngine) open(ctx context.Context, w Webhooks, crds []*apiextensionsv1.CustomResourceDefinition) (err error) {
	if s.explainer, err = newExplainer(s.server.API, w, crds); err != nil {
		return err
	}
	all, err := w.completed()
	if err != nil {
		return err
	}
	return s.server.Open(ctx, realserver.Setup{Mutating: all.mutating, Validating: all.validating, Handlers: w.Handlers, CRDs: crds})
}

// Close waits for running requests and deletes everything that the engine created.
func (s *serverEngine) Close() error {
	s.closeOnce.Do(func() {
		s.closing.Lock()
		s.closed = true
		s.closing.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		s.closeErr = errors.Join(s.server.Close(ctx), s.audit.Close())
	})
	return s.closeErr
}

// errClosed is the error of Admit after Close.
var errClosed = errors.New("the engine is closed")

// cleanupTimeout bounds how long Admit waits for the deletion of the objects of a request.
const cleanupTimeout = time.Minute

// Admit sends one request to the API server and collects the webhook calls.
func (s *serverEngine) Admit(ctx context.Context, req Request) (result *Result, err error) {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return nil, errClosed
	}
	id := fmt.Sprintf("%s-%d", s.server.ID, s.requests.Add(1))
	sent, err := realserver.NewSubmission(ctx, s.server, realserver.Request(req), id)
	if err != nil {
		return nil, err
	}
	defer s.objects.Lock(sent.Path(), sent.ChangesNothing())()
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	defer func() {
		if undone := sent.Undo(cleanup); undone != nil {
			result, err = nil, errors.Join(err, undone)
		}
	}()
	if err := sent.Prepare(ctx); err != nil {
		return nil, err
	}
	calls := s.server.Proxy.Expect(id)
	defer s.server.Proxy.Forget(id)
	event := s.audit.Want(id)
	defer s.audit.Forget(id)
	answer, err := s.server.API.Send(ctx, sent.Message())
	if err != nil {
		return nil, fmt.Errorf("the API server did not respond: %w", err)
	}
	if err := sent.RecordStored(answer); err != nil {
		return nil, err
	}
	a := &serverAdmission{Submission: sent, audit: s.audit, explainer: s.explainer, callsOnly: s.callsOnly}
	return a.result(ctx, answer, event, calls.All())
}
