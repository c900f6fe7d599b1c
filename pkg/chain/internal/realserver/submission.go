// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A Request is a request to the API server. Its fields are those of chain.Request.
type Request struct {
	Operation       admissionv1.Operation
	Resource        metav1.GroupVersionResource
	SubResource     string
	Namespace, Name string
	Object          []byte
	OldObject       []byte
	DryRun          bool
	FieldManager    string
	User            authenticationv1.UserInfo
}

// A Submission is one request to the API server, with the object that the engine stored for it.
type Submission struct {
	Request
	*Server
	id              string
	user            authenticationv1.UserInfo // with the id in its extra
	resource        servedResource
	object          Document // the object to send; nil on DELETE, and if it cannot be decoded
	Stored          Document // the object on the API server that Undo deletes
	ObjectNamespace string
	ObjectName      string
	Differences     []string // fields of the old object that the API server stored with other values
}

// NewSubmission resolves a request. The id identifies it among the requests of all engines.
func NewSubmission(ctx context.Context, s *Server, req Request, id string) (*Submission, error) {
	m := &Submission{Request: req, Server: s, id: id, user: withID(req.User, id)}
	return m, m.resolve(ctx)
}

// ChangesNothing reports whether the request stores nothing on the API server, so that it can run at the same time as
// other requests for the same object.
func (s *Submission) ChangesNothing() bool {
	return s.Operation == admissionv1.Connect || s.Operation == admissionv1.Create && s.DryRun && s.SubResource == ""
}

// resolve decodes the objects and finds the resource, the namespace and the name of the request.
func (s *Submission) resolve(ctx context.Context) (err error) {
	if s.Object != nil {
		s.object, _ = decodeDocument(s.Object) // the API server reports what is wrong with it
	}
	var old Document
	if s.OldObject != nil {
		if old, err = decodeDocument(s.OldObject); err != nil {
			return fmt.Errorf("the old object: %w", err)
		}
	}
	if s.resource, err = s.discovery.find(ctx, s.Resource, s.SubResource); err != nil {
		return err
	}
	object := s.object
	if s.Operation == admissionv1.Connect {
		object = nil // the options object has no name
	}
	s.ObjectName = firstOf(s.Name, object.meta("name"), old.meta("name"))
	if s.resource.namespaced {
		s.ObjectNamespace = firstOf(s.Namespace, object.meta("namespace"), old.meta("namespace"), metav1.NamespaceDefault)
	}
	switch {
	case s.Operation == admissionv1.Create && s.SubResource == "":
		if s.Object == nil {
			return errors.New("a CREATE needs an object")
		}
		s.ObjectName = object.meta("name") // empty with generateName
	case s.ObjectName == "":
		return fmt.Errorf("a request to %s %s needs the name of the object", s.Operation, s.Resource.Resource)
	case s.Operation == admissionv1.Update && (s.Object == nil || old == nil):
		return errors.New("an UPDATE needs the object and the old object")
	case s.Operation == admissionv1.Delete && old == nil:
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

// Path returns the path of the object, or of the collection if the object has no name yet.
func (s *Submission) Path() string { return s.resource.path(s.ObjectNamespace, s.ObjectName) }

// Message returns the request as a client would send it.
func (s *Submission) Message() Message {
	m := Message{User: &s.user, id: s.id, Path: s.Path(), Query: url.Values{}}
	if s.SubResource != "" {
		m.Path += "/" + s.SubResource
	}
	switch s.Operation {
	case admissionv1.Create:
		m.Method = http.MethodPost
		if s.SubResource == "" {
			m.Path = s.resource.path(s.ObjectNamespace, "")
		}
		m.Body = s.Object
	case admissionv1.Update:
		m.Method, m.Body = http.MethodPut, s.Object
		if s.object != nil {
			m.Body = s.object.Encode()
		}
	case admissionv1.Delete:
		m.Method = http.MethodDelete
	case admissionv1.Connect:
		m.Method, m.Query = http.MethodPost, s.object.query()
		return m
	}
	if s.DryRun {
		m.Query.Set("dryRun", metav1.DryRunAll)
	}
	if s.FieldManager != "" && s.Operation != admissionv1.Delete {
		m.Query.Set("fieldManager", s.FieldManager)
	}
	return m
}

// setByServer lists the metadata fields that only the API server sets.
var setByServer = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// Prepare creates the namespace of the request if it does not exist, and stores the old object if the request has one.
func (s *Submission) Prepare(ctx context.Context) error {
	if s.ObjectNamespace != "" {
		if err := s.Namespaces.Need(ctx, s.ObjectNamespace); err != nil {
			return err
		}
	}
	if s.OldObject == nil {
		return nil
	}
	old, err := decodeDocument(s.OldObject)
	if err != nil {
		return err
	}
	if err := s.setUp(ctx, old); err != nil {
		return fmt.Errorf("the old object cannot be stored on the API server: %w", err)
	}
	if s.Operation == admissionv1.Update && s.object != nil && s.SubResource != "scale" {
		s.object = sameIdentity(s.object, old, s.Stored)
	}
	return nil
}

// setUp stores the old object. No webhook of the engine is called for it.
func (s *Submission) setUp(ctx context.Context, old Document) error {
	unset := map[string]any{"name": s.ObjectName}
	if s.ObjectNamespace != "" {
		unset["namespace"] = s.ObjectNamespace
	}
	for _, key := range setByServer {
		unset[key] = nil
	}
	m := Message{Method: http.MethodPost, Path: s.resource.path(s.ObjectNamespace, ""), Body: old.withMeta(unset).Encode()}
	if err := s.API.Do(ctx, m, &s.Stored); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s exists already, and this engine did not create it", s.Path())
		}
		return err
	}
	if status := old["status"]; s.resource.hasStatus && !emptyValue(status) {
		withStatus := s.Stored.withMeta(nil)
		withStatus["status"] = status
		m := Message{Method: http.MethodPut, Path: s.Path() + "/status", Body: withStatus.Encode()}
		s.Stored = nil
		if err := s.API.Do(ctx, m, &s.Stored); err != nil {
			return fmt.Errorf("its status: %w", err)
		}
	}
	if old.meta("deletionTimestamp") != "" {
		if err := s.API.Do(ctx, Message{Method: http.MethodDelete, Path: s.Path()}, nil); err != nil {
			return err
		}
		s.Stored = nil
		if err := s.API.Get(ctx, s.Path(), &s.Stored); err != nil {
			return fmt.Errorf("it has a deletionTimestamp, but the API server deleted it at once because it has no finalizer: %w", err)
		}
	}
	s.Differences = s.compare(old)
	return s.awaitCached(ctx)
}

// awaitCached waits until the API server's cache has the stored object. If a request starts with an older object, the API
// server starts it again and calls the webhooks again.
func (s *Submission) awaitCached(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var cached Document
		err := s.API.Do(ctx, Message{Method: http.MethodGet, Path: s.Path(), Query: url.Values{"resourceVersion": {"0"}}}, &cached)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return cached.meta("resourceVersion") == s.Stored.meta("resourceVersion"), err
	})
}

// compare returns the paths of the fields of the old object that the API server stored with other values. They are
// sorted.
func (s *Submission) compare(old Document) []string {
	var paths []string
	for _, key := range setByServer {
		if v, ok := old.metadata()[key]; ok && !EqualValue(v, s.Stored.metadata()[key]) {
			paths = append(paths, "metadata."+key)
		}
	}
	for key, v := range old {
		if key != "metadata" && key != "apiVersion" && !contains(s.Stored[key], v) {
			paths = append(paths, key)
		}
	}
	slices.Sort(paths)
	return paths
}

// sameIdentity returns the new object with the fields of the stored object that only the API server sets, such as
// uid and resourceVersion. It keeps values that differ from those of the old object.
func sameIdentity(object, old, stored Document) Document {
	change := map[string]any{}
	for _, key := range setByServer {
		given, ok := object.metadata()[key]
		if key == "resourceVersion" && !ok || ok && EqualValue(given, old.metadata()[key]) {
			change[key] = stored.metadata()[key]
		}
	}
	return object.withMeta(change)
}

// RecordStored records the object that a CREATE stored, so that Undo deletes it.
func (s *Submission) RecordStored(r *Reply) error {
	if s.Operation != admissionv1.Create || s.SubResource != "" || s.DryRun || r.Status() != nil {
		return nil
	}
	var err error
	if s.Stored, err = decodeDocument(r.Body); err != nil {
		return fmt.Errorf("cannot decode the API server's response to a CREATE: %w", err)
	}
	s.ObjectName = s.Stored.meta("name") // the API server may have generated it, or a webhook may have changed it
	return nil
}

// Undo deletes the object that the engine or the request stored.
func (s *Submission) Undo(ctx context.Context) error {
	if s.Stored == nil {
		return nil
	}
	if err := s.cleaner.removeObject(ctx, s.resource, s.ObjectNamespace, s.Stored); err != nil {
		return fmt.Errorf("cannot delete %s, which the engine stored: %w", s.Path(), err)
	}
	return nil
}
