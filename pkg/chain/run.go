// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/warning"

	"github.com/admitkit/admitkit/internal/customresource"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// requestTimeout is the API server's upper bound of a request's time.
const requestTimeout = 34 * time.Second

// A run is one request in the chain, with the record of its webhook calls.
type run struct {
	*asked
	chain *Chain
	ctx   context.Context

	// attributes and current are what webhooks are asked about: current is the object as the last
	// patch left it, or nil.
	attributes admission.Attributes
	current    runtime.Object
	round      int
	step       int // 1 for the second of a deletion
	verdicts   []verdict

	mu          sync.Mutex // validating webhooks are called at the same time
	calls       []*call
	open        map[*hook]*call
	annotations []Annotation
	seen        map[string]bool
	failedOpen  bool // a validating webhook

	explanation *Explanation // nil unless the run asks no webhooks, but tells of them
	explained   int          // how many sorts of webhooks it has come to
}

// A verdict is the reason why one hook was selected or not. Verdicts are in the order of the hooks.
type verdict struct {
	hook *hook
	reason
}

type runKey struct{}

func runOf(ctx context.Context) *run { return ctx.Value(runKey{}).(*run) }

// admit does what the API server's handlers and storage do for a request.
func (r *run) admit(ctx context.Context) error {
	r.ctx = context.WithValue(ctx, runKey{}, r)
	if r.explanation == nil {
		defer r.decideRest()
	}
	if r.operation == admission.Connect {
		return r.connect()
	}
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithTimeout(r.ctx, requestTimeout)
	defer cancel()
	if v := r.customVersion(); v != nil && v.Deprecation != "" {
		warning.AddWarning(r.ctx, "", v.Deprecation)
	}
	for _, err := range r.unknown {
		warning.AddWarning(r.ctx, "", err.Error())
	}
	var err error
	switch r.operation {
	case admission.Create:
		err = r.create()
	case admission.Update:
		err = r.update()
	default:
		err = r.delete()
	}
	if late := r.late(); late != nil { // also without an error: what is left to do, such as to store the object, would fail
		// The handler does not wait for what comes of the request after that.
		return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %s", late), 0)
	}
	return err
}

// late is why the request is out of time, if it is. The timer of its context may be about to fire.
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
	if err := r.mutate(r.record(r.object, nil)); err != nil {
		return err
	}
	return r.validate(r.record(r.object, nil))
}

func (r *run) create() error {
	if m, err := meta.Accessor(r.object); err == nil {
		rest.WipeObjectMetaSystemFields(m)
		if err := r.matchNamespace(m); err != nil {
			return err
		}
		strategy.DedupOwners(r.ctx, m, false)
		if err := r.chain.managed.stamp(r.kind, r.SubResource, nil, r.object, r.FieldManager); err != nil {
			return err
		}
	}
	if err := r.mutate(r.record(r.object, nil)); err != nil {
		return err
	}
	m, err := meta.Accessor(r.object)
	if err == nil {
		strategy.DedupOwners(r.ctx, m, true)
		if err := r.beforeCreate(m); err != nil {
			return err
		}
		if r.name == "" {
			r.name = m.GetName()
		}
	}
	if err := r.validate(r.record(r.object, nil)); err != nil {
		return err
	}
	return r.store()
}

// beforeCreate is what comes between the mutating and the validating webhooks.
func (r *run) beforeCreate(m metav1.Object) error {
	if k8svalidation.Virtual(r.resource.GroupResource()) {
		return nil // it is answered, not stored
	}
	if r.SubResource == "" {
		rest.FillObjectMetaSystemFields(m)
		if m.GetGenerateName() != "" && m.GetName() == "" {
			m.SetName(names.SimpleNameGenerator.GenerateName(m.GetGenerateName()))
		}
	}
	if err := r.matchNamespace(m); err != nil {
		return err
	}
	if v := r.customVersion(); v != nil {
		v.PrepareForCreate(r.object.(*unstructured.Unstructured))
	} else if r.hasStrategy() && r.SubResource == "" {
		strategy.PrepareForCreate(r.kind, r.object, m)
	}
	if errs := r.invalid(); len(errs) > 0 {
		return r.refusal(m, errs)
	}
	if r.SubResource != "" {
		return nil
	}
	if errs := apivalidation.ValidateObjectMetaAccessor(m, r.namespaced(), pathSegment, field.NewPath("metadata")); len(errs) > 0 {
		return r.refusal(m, errs)
	}
	r.canonicalize()
	return nil
}

func (r *run) update() error {
	m, err := meta.Accessor(r.object)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	old, err := meta.Accessor(r.old)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := r.matchNamespace(m); err != nil {
		return err
	}
	if err := r.matchNamespace(old); err != nil {
		return err
	}
	strategy.DedupOwners(r.ctx, m, false)
	if err := r.chain.managed.stamp(r.kind, r.SubResource, r.old, r.object, r.FieldManager); err != nil {
		return err
	}
	if err := r.mutate(r.record(r.object, r.old)); err != nil {
		return err
	}
	if m, err = meta.Accessor(r.object); err != nil {
		return apierrors.NewInternalError(err)
	}
	strategy.DedupOwners(r.ctx, m, true)
	if err := r.beforeUpdate(m, old); err != nil {
		return err
	}
	if err := r.validate(r.record(r.object, r.old)); err != nil {
		return err
	}
	return r.store()
}

// store is what writing to the storage and reading again does to an object, and finds wrong with it.
func (r *run) store() error {
	if r.explanation != nil {
		return nil
	}
	if custom := r.chain.objects.customOf(r.object); custom != nil {
		stored, err := custom.stored(r.object.(*unstructured.Unstructured))
		if err != nil {
			return err
		}
		r.object = stored
		return nil
	}
	if r.hasStrategy() {
		r.chain.objects.Default(r.object) // as it is read back
	}
	return nil
}

func (r *run) beforeUpdate(m, old metav1.Object) error {
	switch version := old.GetResourceVersion(); m.GetResourceVersion() {
	case "":
		m.SetResourceVersion(version)
	case version:
	default:
		return apierrors.NewConflict(r.resource.GroupResource(), m.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if err := r.matchNamespace(m); err != nil {
		return err
	}
	m.SetGeneration(old.GetGeneration())
	if v := r.customVersion(); v != nil {
		v.PrepareForUpdate(r.object.(*unstructured.Unstructured), r.old.(*unstructured.Unstructured), r.SubResource)
	} else if r.hasStrategy() {
		strategy.PrepareForUpdate(r.kind, r.SubResource, r.object, r.old, m, old)
	}
	if m.GetUID() == "" {
		m.SetUID(old.GetUID())
	}
	if t := old.GetCreationTimestamp(); !t.IsZero() {
		m.SetCreationTimestamp(t)
	}
	if !old.GetDeletionTimestamp().IsZero() {
		m.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if old.GetDeletionGracePeriodSeconds() != nil && m.GetDeletionGracePeriodSeconds() == nil {
		m.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	errs := apivalidation.ValidateObjectMetaAccessor(m, r.namespaced(), pathSegment, field.NewPath("metadata"))
	errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(m, old, field.NewPath("metadata"))...)
	errs = append(errs, r.invalid()...)
	// A stored object has a version. One that was written down need not.
	errs = slices.DeleteFunc(errs, func(err *field.Error) bool {
		return err.Field == "metadata.resourceVersion" && old.GetResourceVersion() == ""
	})
	if len(errs) > 0 {
		return r.refusal(m, errs)
	}
	r.canonicalize()
	return nil
}

func (r *run) mutate(a admission.Attributes) error {
	r.attributes, r.current, r.round = a, nil, 0
	if r.explanation != nil {
		r.explain(r.chain.mutating)
		return nil
	}
	err := r.chain.admission.Admit(r.ctx, a, interfaces{r.chain.objects, r})
	r.decide(len(r.chain.mutating))
	return err
}

func (r *run) validate(a admission.Attributes) error {
	r.attributes, r.current, r.round = a, nil, 0
	if r.explanation != nil {
		r.explain(r.chain.validating)
		return nil
	}
	r.decideValidating()
	return r.chain.admission.Validate(r.ctx, a, interfaces{r.chain.objects, r})
}

// record makes the attributes of the request. Interfaces must be nil where there is nothing.
func (r *run) record(object, old runtime.Object) admission.Attributes {
	return &attributes{admission.NewAttributesRecord(object, old, r.kind, r.namespace, r.name, r.resource, r.SubResource,
		r.operation, r.options, r.DryRun, r.user), r}
}

// asked for by a webhook: the attributes with the object as it is by now.
func (r *run) now() admission.Attributes {
	if r.current == nil {
		return r.attributes
	}
	return withObject{r.attributes, r.current}
}

func (r *run) decide(until int) {
	for len(r.verdicts) < until {
		h := r.chain.mutating[len(r.verdicts)]
		r.verdicts = append(r.verdicts, verdict{h, r.chain.predicates.decide(r.ctx, h, r.now(), interfaces{r.chain.objects, r})})
	}
}

// decideValidating follows after all mutating hooks.
func (r *run) decideValidating() {
	for _, h := range r.chain.validating[len(r.verdicts)-len(r.chain.mutating):] {
		r.verdicts = append(r.verdicts, verdict{h, r.chain.predicates.decide(r.ctx, h, r.now(), interfaces{r.chain.objects, r})})
	}
}

// decideRest finds the reasons for webhooks that the run never came to.
func (r *run) decideRest() {
	r.ctx = context.WithoutCancel(r.ctx)
	if r.attributes == nil {
		r.attributes = r.record(r.object, r.old)
	}
	r.decide(len(r.chain.mutating))
	r.decideValidating()
}

// refusal names the object as it is by now: a patch may have made it another kind.
func (r *run) refusal(m metav1.Object, errs field.ErrorList) error {
	kind := r.kind.GroupKind()
	if u, ok := r.object.(*unstructured.Unstructured); ok {
		kind = u.GroupVersionKind().GroupKind()
	}
	return apierrors.NewInvalid(kind, m.GetName(), errs)
}

// invalid is what the validation of the resource finds.
func (r *run) invalid() field.ErrorList {
	if v := r.customVersion(); v != nil && r.operation == admission.Create {
		return v.Validate(r.ctx, r.object.(*unstructured.Unstructured))
	} else if v != nil {
		return v.ValidateUpdate(r.ctx, r.object.(*unstructured.Unstructured), r.old.(*unstructured.Unstructured), r.SubResource)
	}
	if u, ok := r.object.(*unstructured.Unstructured); ok {
		return customresource.ValidateType(u, r.kind)
	}
	if r.chain.options.Validate == nil {
		return nil
	}
	if r.operation == admission.Create {
		return r.chain.options.Validate(r.object, nil)
	}
	return r.chain.options.Validate(r.object, r.old)
}

func (r *run) hasStrategy() bool {
	_, ok := r.object.(runtime.Unstructured)
	return !ok && strategy.Has(r.kind)
}

func (r *run) canonicalize() {
	if r.hasStrategy() {
		strategy.Canonicalize(r.object)
	}
}

// customVersion is nil for other objects, such as the Scale of a custom resource.
func (r *run) customVersion() *customVersion { return r.chain.objects.customVersion(r.kind) }

func (r *run) namespaced() bool { return r.namespace != "" && !isNamespace(r.resource) }

func (r *run) matchNamespace(m metav1.Object) error {
	return rest.EnsureObjectNamespaceMatchesRequestNamespace(rest.ExpectedNamespaceForResource(r.namespace, r.resource), m)
}

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
