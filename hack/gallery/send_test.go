// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// A sender sends a prepared request to an API server, and returns the stored object, which is nil after a DELETE.
type sender func(ctx context.Context, to *server) (map[string]any, error)

// prepare creates the old object of an UPDATE or a DELETE, unless that exists. The server must not run the controller or
// its hooks: otherwise the policy would decide about the old object instead of the request. The error is errNotSendable
// if the API server does not accept the old object.
func (s *server) prepare(ctx context.Context, r *request, suffix string) (sender, error) {
	if r.exists {
		suffix = ""
	}
	object, err := wire(r.object, r.kind, suffix)
	if err != nil {
		return nil, err
	}
	// A stored default class would change the answers to later requests, after an unknown time.
	dryRun := r.dryRun || r.resource.Resource == "priorityclasses"
	if r.operation == admission.Create {
		return r.sender(func(ctx context.Context, in dynamic.ResourceInterface) (map[string]any, error) {
			return content(in.Create(ctx, object, createOptions(dryRun)))
		}), nil
	}
	old, err := wire(r.old, r.kind, suffix)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(old.Object, "globalDefault")
	stored, err := s.oldObject(ctx, r, old)
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return nil, fmt.Errorf("%w: %w", errNotSendable, err)
	}
	if err != nil {
		return nil, err
	}
	dry := createOptions(dryRun).DryRun
	if r.operation == admission.Delete {
		return r.sender(func(ctx context.Context, in dynamic.ResourceInterface) (map[string]any, error) {
			return nil, in.Delete(ctx, stored.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64), DryRun: dry})
		}), nil
	}
	object.SetName(stored.GetName())
	object.SetResourceVersion(stored.GetResourceVersion())
	var subresources []string
	if r.subresource != "" {
		subresources = []string{r.subresource}
	}
	return r.sender(func(ctx context.Context, in dynamic.ResourceInterface) (map[string]any, error) {
		return content(in.Update(ctx, object, metav1.UpdateOptions{DryRun: dry}, subresources...))
	}), nil
}

// sender returns a sender that calls by with a client for the user and the resource of the request.
func (r *request) sender(by func(ctx context.Context, in dynamic.ResourceInterface) (map[string]any, error)) sender {
	return func(ctx context.Context, to *server) (map[string]any, error) {
		in, err := to.client(r)
		if err != nil {
			return nil, err
		}
		return by(ctx, in)
	}
}

func createOptions(dry bool) (o metav1.CreateOptions) {
	if dry {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return o
}

// client returns a client that sends requests as the user of r, or as an administrator.
func (s *server) client(r *request) (dynamic.ResourceInterface, error) {
	if r.user == nil {
		return resourceOf(s.dynamic, r), nil
	}
	config := s.Config()
	config.QPS = -1
	s.observe(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: r.from().GetName(), UID: r.from().GetUID(), Groups: r.from().GetGroups(), Extra: r.from().GetExtra()}
	as, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return resourceOf(as, r), nil
}

func resourceOf(client dynamic.Interface, r *request) dynamic.ResourceInterface {
	if r.namespace == "" || r.resource.Resource == "namespaces" {
		return client.Resource(r.resource)
	}
	return client.Resource(r.resource).Namespace(r.namespace)
}

// oldObject creates the old object with its phase, or gets it if it exists.
func (s *server) oldObject(ctx context.Context, r *request, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	in := resourceOf(s.dynamic, r)
	if r.exists {
		return in.Get(ctx, old.GetName(), metav1.GetOptions{})
	}
	status, _, err := unstructured.NestedString(old.Object, "status", "phase")
	if err != nil {
		return nil, err
	}
	stored, err := in.Create(ctx, old, metav1.CreateOptions{})
	if err != nil || status == "" {
		return stored, err
	}
	if err := unstructured.SetNestedField(stored.Object, status, "status", "phase"); err != nil {
		return nil, err
	}
	return in.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
}

// wire returns the object as it is sent, with its kind, and with the suffix of this pass at its name. It returns nil
// for nil.
func wire(object runtime.Object, kind schema.GroupVersionKind, suffix string) (*unstructured.Unstructured, error) {
	if object == nil {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: maps.Clone(content)}
	u.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(u.Object, "metadata", "deletionTimestamp")
	if u.GetName() != "" {
		u.SetName(u.GetName() + suffix)
	}
	return u, nil
}

func content(object *unstructured.Unstructured, err error) (map[string]any, error) {
	var status *apierrors.StatusError
	switch {
	case errors.As(err, &status):
		return nil, status
	case err != nil:
		return nil, fmt.Errorf("sending the request: %w", err)
	}
	return object.Object, nil
}
