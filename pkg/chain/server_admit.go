// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An admissionRun is one request to the API server, with the objects that the engine stored for it.
type admissionRun struct {
	Request
	*serverEngine
	id     string
	user   authenticationv1.UserInfo // with the id
	kind   servedResource
	object document // that is sent; nil on DELETE, and if it cannot be decoded
	stored document // the old object as it is on the API server
	ns     string
	name   string
	limits []Limit
}

// cleanupTimeout bounds how long it may take to remove what a request left.
const cleanupTimeout = time.Minute

// Admit sends one request to the API server and collects the webhook calls.
func (s *serverEngine) Admit(ctx context.Context, req Request) (result *Result, err error) {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return nil, errClosed
	}
	id := fmt.Sprintf("%s-%d", s.id, s.requests.Add(1))
	a := &admissionRun{Request: req, serverEngine: s, id: id, user: withID(req.User, id)}
	if err := a.resolve(ctx); err != nil {
		return nil, err
	}
	defer s.objects.lock(a.place(), a.changesNothing())()
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	defer func() {
		if undone := a.undo(cleanup); undone != nil {
			result, err = nil, errors.Join(err, undone)
		}
	}()
	if err := a.prepare(ctx); err != nil {
		return nil, err
	}
	calls := s.proxy.expect(id)
	defer s.proxy.forget(id)
	event := s.audit.want(id)
	defer s.audit.forget(id)
	answer, err := s.api.send(ctx, a.message())
	if err != nil {
		return nil, fmt.Errorf("no answer from the API server: %w", err)
	}
	if err := a.note(answer); err != nil {
		return nil, err
	}
	return a.result(ctx, answer, event, calls.all())
}

// changesNothing reports whether requests for the same object do not meet.
func (a *admissionRun) changesNothing() bool {
	return a.Operation == admissionv1.Connect || a.Operation == admissionv1.Create && a.DryRun && a.SubResource == ""
}

// resolve finds out what the request addresses.
func (a *admissionRun) resolve(ctx context.Context) (err error) {
	if a.Object != nil {
		a.object, _ = decodeDocument(a.Object) // the API server says what is wrong with it
	}
	var old document
	if a.OldObject != nil {
		if old, err = decodeDocument(a.OldObject); err != nil {
			return fmt.Errorf("the old object: %w", err)
		}
	}
	if a.kind, err = a.discovery.find(ctx, a.Resource, a.SubResource); err != nil {
		return err
	}
	object := a.object
	if a.Operation == admissionv1.Connect {
		object = nil // options have no name
	}
	a.name = firstOf(a.Name, object.meta("name"), old.meta("name"))
	if a.kind.namespaced {
		a.ns = firstOf(a.Namespace, object.meta("namespace"), old.meta("namespace"), metav1.NamespaceDefault)
	}
	switch {
	case a.Operation == admissionv1.Create && a.SubResource == "":
		if a.Object == nil {
			return errors.New("a CREATE needs an object")
		}
		a.name = object.meta("name") // none with generateName
	case a.name == "":
		return fmt.Errorf("a request to %s %s needs the name of the object", a.Operation, a.Resource.Resource)
	case a.Operation == admissionv1.Update && (a.Object == nil || old == nil):
		return errors.New("an UPDATE needs the object and the old object")
	case a.Operation == admissionv1.Delete && old == nil:
		return errors.New("a DELETE needs the old object")
	}
	return nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// place is the path of the object, or of the collection if it has no name yet.
func (a *admissionRun) place() string { return a.kind.path(a.ns, a.name) }

// message is the request as a client would send it.
func (a *admissionRun) message() message {
	m := message{user: &a.user, id: a.id, path: a.place(), query: url.Values{}}
	if a.SubResource != "" {
		m.path += "/" + a.SubResource
	}
	switch a.Operation {
	case admissionv1.Create:
		m.method = http.MethodPost
		if a.SubResource == "" {
			m.path = a.kind.path(a.ns, "")
		}
		m.body = a.Object
	case admissionv1.Update:
		m.method, m.body = http.MethodPut, a.Object
		if a.object != nil {
			m.body = a.object.encode()
		}
	case admissionv1.Delete:
		m.method = http.MethodDelete
	case admissionv1.Connect:
		m.method, m.query = http.MethodPost, a.object.query()
		return m
	}
	if a.DryRun {
		m.query.Set("dryRun", metav1.DryRunAll)
	}
	if a.FieldManager != "" && a.Operation != admissionv1.Delete {
		m.query.Set("fieldManager", a.FieldManager)
	}
	return m
}

// limit records what the engine did not do as asked.
func (a *admissionRun) limit(code LimitCode, format string, args ...any) {
	a.limits = append(a.limits, Limit{code, fmt.Sprintf(format, args...)})
}
