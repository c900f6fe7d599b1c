// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// requestTimeout is the API server's upper bound of a request's time.
const requestTimeout = 34 * time.Second

// A run is one request in the chain.
type run struct {
	*subject
	registry *registry
	managed  *fieldManagers
	webhooks webhookStages
	stores   bool // false if the run only explains
}

// newRun returns the run of a request. Without stores, the object is not stored after the webhooks.
func newRun(e *engine, s *subject, w webhookStages, stores bool) *run {
	return &run{subject: s, managed: &e.managed, webhooks: w, stores: stores, registry: &registry{
		decodedRequest: s.decodedRequest, objects: e.objects, setsDefaults: e.options.Default != nil, validate: e.options.Validate}}
}

func (r *run) setContext(ctx context.Context) { r.ctx, r.registry.ctx = ctx, ctx }

// store stores the object, unless the run only explains.
func (r *run) store() error {
	if !r.stores {
		return nil
	}
	return r.registry.store()
}

// admit processes a request as the API server's handlers and storage do.
func (r *run) admit(ctx context.Context) error {
	r.setContext(ctx)
	if r.Operation == admission.Connect {
		return r.connect()
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r.setContext(ctx)
	if v := r.registry.customVersion(); v != nil && v.Deprecation != "" {
		warning.AddWarning(r.ctx, "", v.Deprecation)
	}
	for _, err := range r.Unknown {
		warning.AddWarning(r.ctx, "", err.Error())
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
	if late := r.late(); late != nil { // also without an error: storing the object would fail
		// The API server does not wait for the result any longer.
		return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %s", late), 0)
	}
	return err
}

// late returns an error after the deadline of the request, even if the timer of its context has not fired yet.
func (r *run) late() error {
	if deadline, ok := r.ctx.Deadline(); ok && r.ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return r.ctx.Err()
}

func (r *run) connect() error {
	if r.DryRun {
		return apierrors.NewBadRequest("dryRun is not supported")
	}
	if err := r.webhooks.mutate(r.newAttributes(r.Object, nil)); err != nil {
		return err
	}
	return r.webhooks.validate(r.newAttributes(r.Object, nil))
}

func (r *run) create() error {
	if m, err := meta.Accessor(r.Object); err == nil {
		rest.WipeObjectMetaSystemFields(m)
		if err := r.registry.matchNamespace(m); err != nil {
			return err
		}
		strategy.DedupOwners(r.ctx, m, false)
		if err := r.managed.stamp(r.Kind, r.SubResource, nil, r.Object, r.FieldManager); err != nil {
			return err
		}
	}
	if err := r.webhooks.mutate(r.newAttributes(r.Object, nil)); err != nil {
		return err
	}
	m, err := meta.Accessor(r.Object)
	if err == nil {
		strategy.DedupOwners(r.ctx, m, true)
		if err := r.registry.beforeCreate(m); err != nil {
			return err
		}
		if r.Name == "" {
			r.Name = m.GetName()
		}
	}
	if err := r.webhooks.validate(r.newAttributes(r.Object, nil)); err != nil {
		return err
	}
	return r.store()
}

func (r *run) update() error {
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
	strategy.DedupOwners(r.ctx, m, false)
	if err := r.managed.stamp(r.Kind, r.SubResource, r.Old, r.Object, r.FieldManager); err != nil {
		return err
	}
	if err := r.webhooks.mutate(r.newAttributes(r.Object, r.Old)); err != nil {
		return err
	}
	if m, err = meta.Accessor(r.Object); err != nil {
		return apierrors.NewInternalError(err)
	}
	strategy.DedupOwners(r.ctx, m, true)
	if err := r.registry.beforeUpdate(m, old); err != nil {
		return err
	}
	if err := r.webhooks.validate(r.newAttributes(r.Object, r.Old)); err != nil {
		return err
	}
	return r.store()
}

func (r *run) delete() error {
	old, err := meta.Accessor(r.Old)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := r.registry.matchNamespace(old); err != nil {
		return err
	}
	if r.Kind.Group == batchv1.GroupName && r.Kind.Kind == "Job" {
		warning.AddWarning(r.ctx, "", jobWarning)
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
	r.webhooks.nextStep()
	return r.admitDelete()
}

// jobWarning is the warning of the storage of Jobs about a deletion without a propagation policy.
const jobWarning = "child pods are preserved by default when jobs are deleted; " +
	"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"

// admitDelete runs the mutating and the validating webhooks with the same attributes.
func (r *run) admitDelete() error {
	a := r.newAttributes(nil, r.Old.DeepCopyObject())
	if err := r.webhooks.mutate(a); err != nil {
		return err
	}
	return r.webhooks.validate(a)
}
