// SPDX-License-Identifier: Apache-2.0

// Package inprocess runs requests through the API server's own admission code in this process. It decodes, prepares and
// stores objects as the API server does, and calls webhooks without the cluster's network.
package inprocess

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// requestTimeout is the API server's limit for the duration of a request.
const requestTimeout = 34 * time.Second

// WebhookStages runs the webhooks of a request. It calls them, or only explains whether they would be called.
type WebhookStages interface {
	Mutate(admission.Attributes) error
	Validate(admission.Attributes) error
	// NextStep begins the second step of a Pod's deletion, in which the API server calls the webhooks again.
	NextStep()
}

// A Storage configures how a Run stores objects.
type Storage struct {
	Managed      *FieldManagers
	SetsDefaults bool                                          // Options.Default is set
	Validate     func(obj, old runtime.Object) field.ErrorList // Options.Validate
	ExplainOnly  bool                                          // objects are not stored after the webhooks
}

// A Run processes one request in this process.
type Run struct {
	*Subject
	storage  Storage
	registry *registry
	webhooks WebhookStages
}

// NewRun returns a Run for the request in s. The Run calls the webhooks through w.
func NewRun(s *Subject, w WebhookStages, storage Storage) *Run {
	return &Run{Subject: s, storage: storage, webhooks: w, registry: &registry{
		DecodedRequest: s.DecodedRequest, objects: s.Objects, setsDefaults: storage.SetsDefaults, validate: storage.Validate}}
}

func (r *Run) setContext(ctx context.Context) { r.Context, r.registry.ctx = ctx, ctx }

// store stores the object, unless the run only explains.
func (r *Run) store() error {
	if r.storage.ExplainOnly {
		return nil
	}
	return r.registry.store()
}

// Admit processes a request as the API server's handlers and storage do.
func (r *Run) Admit(ctx context.Context) error {
	r.setContext(ctx)
	if r.Operation == admission.Connect {
		return r.connect()
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r.setContext(ctx)
	if v := r.registry.customVersion(); v != nil && v.Deprecation != "" {
		warning.AddWarning(r.Context, "", v.Deprecation)
	}
	for _, err := range r.Unknown {
		warning.AddWarning(r.Context, "", err.Error())
	}
	var err error
	switch r.Operation {
	case admission.Create:
		err = r.create()
	case admission.Update:
		err = r.update()
	default:
		err = r.delete()
	}
	if late := r.late(); late != nil { // even if err is nil, because storing the object would fail
		// The API server does not wait for the result any longer.
		return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %s", late), 0)
	}
	return err
}

// late returns an error after the deadline of the request, even if the timer of its context has not fired yet.
func (r *Run) late() error {
	if deadline, ok := r.Context.Deadline(); ok && r.Context.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return r.Context.Err()
}

func (r *Run) connect() error {
	if r.DryRun {
		return apierrors.NewBadRequest("dryRun is not supported")
	}
	if err := r.webhooks.Mutate(r.NewAttributes(r.Object, nil)); err != nil {
		return err
	}
	return r.webhooks.Validate(r.NewAttributes(r.Object, nil))
}

func (r *Run) create() error {
	if m, err := meta.Accessor(r.Object); err == nil {
		rest.WipeObjectMetaSystemFields(m)
		if err := r.registry.matchNamespace(m); err != nil {
			return err
		}
		strategy.DedupOwners(r.Context, m, false)
		if err := r.storage.Managed.stamp(r.Kind, r.SubResource, nil, r.Object, r.FieldManager); err != nil {
			return err
		}
	}
	if err := r.webhooks.Mutate(r.NewAttributes(r.Object, nil)); err != nil {
		return err
	}
	m, err := meta.Accessor(r.Object)
	if err == nil {
		strategy.DedupOwners(r.Context, m, true)
		if err := r.registry.beforeCreate(m); err != nil {
			return err
		}
		if r.Name == "" {
			r.Name = m.GetName()
		}
	}
	if err := r.webhooks.Validate(r.NewAttributes(r.Object, nil)); err != nil {
		return err
	}
	return r.store()
}

func (r *Run) update() error {
	m, err := meta.Accessor(r.Object)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	old, err := meta.Accessor(r.Old)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := r.registry.matchNamespace(m); err != nil {
		return err
	}
	if err := r.registry.matchNamespace(old); err != nil {
		return err
	}
	strategy.DedupOwners(r.Context, m, false)
	if err := r.storage.Managed.stamp(r.Kind, r.SubResource, r.Old, r.Object, r.FieldManager); err != nil {
		return err
	}
	if err := r.webhooks.Mutate(r.NewAttributes(r.Object, r.Old)); err != nil {
		return err
	}
	if m, err = meta.Accessor(r.Object); err != nil {
		return apierrors.NewInternalError(err)
	}
	strategy.DedupOwners(r.Context, m, true)
	if err := r.registry.beforeUpdate(m, old); err != nil {
		return err
	}
	if err := r.webhooks.Validate(r.NewAttributes(r.Object, r.Old)); err != nil {
		return err
	}
	return r.store()
}

func (r *Run) delete() error {
	old, err := meta.Accessor(r.Old)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := r.registry.matchNamespace(old); err != nil {
		return err
	}
	if r.Kind.Group == batchv1.GroupName && r.Kind.Kind == "Job" {
		warning.AddWarning(r.Context, "", jobWarning)
	}
	r.registry.setPreconditions(old)
	twice := r.registry.setGracePeriod(old)
	if err := r.admitDelete(); err != nil || !twice {
		return err
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	old.SetDeletionTimestamp(&now)
	old.SetDeletionGracePeriodSeconds(ptr.To[int64](0))
	if generation := old.GetGeneration(); generation > 0 {
		old.SetGeneration(generation + 1)
	}
	r.webhooks.NextStep()
	return r.admitDelete()
}

// jobWarning is the API server's warning when a Job is deleted without a propagation policy.
const jobWarning = "child pods are preserved by default when jobs are deleted; " +
	"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"

// admitDelete runs the mutating and the validating webhooks of a DELETE with the same attributes.
func (r *Run) admitDelete() error {
	a := r.NewAttributes(nil, r.Old.DeepCopyObject())
	if err := r.webhooks.Mutate(a); err != nil {
		return err
	}
	return r.webhooks.Validate(a)
}
