// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// A Hook is one webhook: a registration and the handler behind it. It is an http.Handler and
// safe for concurrent use. Make one with [Mutating] or [Validating]; its With… methods return
// changed copies.
type Hook struct {
	reg      registration
	wrong    error // with the registration, the handler or its type
	noKind   error // why the kinds of the type are not known, where that is a mistake
	misfit   error // rules for kinds that the type does not hold
	invalid  error // all that is wrong: see checked
	kinds    []metav1.GroupVersionKind
	newCall  func() call
	raw      bool // the handler takes bytes
	maxBytes int64
	logger   *logr.Logger
	gate     *gate // of the server it is served by

	observers []Observer

	unknown      UnknownFieldsPolicy
	unknownCalls *atomic.Uint64 // shared with copies
}

// admitFunc is a raw handler. A validating hook's patch is never sent.
type admitFunc func(context.Context, *review.Request) (*review.Decision, patch.Patch, error)

// Mutating returns a hook that calls mutate with each object and sends what it changed in
// it as a JSON Patch; see [patch.Diff] for what counts as a change.
//
// The registration is completed where it leaves fields unset: failurePolicy Fail, matchPolicy
// Equivalent, sideEffects None, timeoutSeconds 5, admissionReviewVersions v1 and v1beta1,
// reinvocationPolicy Never, and a namespaceSelector that leaves out kube-system and the
// webhook's own namespace (see [Configurations]). It is checked by the rules of the API
// server; what is wrong is reported, all at once, by [Hook.Check], [Configurations],
// [Register] and [Server.Start], and every call to such a hook fails.
//
// An API type, which is a runtime.Object because it has a method DeepCopyObject, is given
// objects of its kind only; see [Hook.WithKinds]. Any other struct is a projection, which is
// given every kind.
//
// On DELETE there is nothing to change: Object is nil. A patch never touches apiVersion,
// kind, metadata.namespace or metadata.managedFields; a handler that changes them fails.
func Mutating[T any](reg admissionregistrationv1.MutatingWebhook, mutate func(context.Context, *Request[T]) error) *Hook {
	return typedHook(fromMutating(reg), mutate)
}

// Validating returns a hook that calls validate with each object. The registration is
// completed and checked as for [Mutating], and so are the kinds of its objects. What validate
// changes in the object is lost.
func Validating[T any](reg admissionregistrationv1.ValidatingWebhook, validate func(context.Context, *Request[T]) error) *Hook {
	return typedHook(fromValidating(reg), validate)
}

func typedHook[T any](reg registration, handler func(context.Context, *Request[T]) error) *Hook {
	sideEffects := reg.declaresSideEffects()
	return newHook[T](reg, handler != nil, func() call {
		return &typedCall[T]{handler: handler, sideEffects: sideEffects, mutating: reg.mutating}
	})
}

// MutatingRaw returns a hook for a handler that reads the documents as bytes and writes its
// own patch, against req.Object. An error is judged as for [Mutating]; a patch that cannot be
// carried out (see [patch.Patch.Check]) is a failure to decide.
func MutatingRaw(reg admissionregistrationv1.MutatingWebhook, admit func(context.Context, *review.Request) (*review.Decision, patch.Patch, error)) *Hook {
	return rawHook(fromMutating(reg), admit != nil, admit)
}

// ValidatingRaw is [MutatingRaw] for a validating hook.
func ValidatingRaw(reg admissionregistrationv1.ValidatingWebhook, admit func(context.Context, *review.Request) (*review.Decision, error)) *Hook {
	return rawHook(fromValidating(reg), admit != nil, func(ctx context.Context, req *review.Request) (*review.Decision, patch.Patch, error) {
		d, err := admit(ctx, req)
		return d, nil, err
	})
}

func rawHook(reg registration, hasHandler bool, admit admitFunc) *Hook {
	admit = judged(admit)
	h := newHook[review.Request](reg, hasHandler, func() call { return &rawCall{admit: admit} })
	h.raw = true
	return h
}

// judged turns the errors of a raw handler that deny into denials.
func judged(admit admitFunc) admitFunc {
	return func(ctx context.Context, req *review.Request) (*review.Decision, patch.Patch, error) {
		none, operation := req.Object == nil, req.Operation // before the handler may change them
		d, p, err := admit(ctx, req)
		switch {
		case err == nil && none && len(p) > 0: // the API server would reject the request whatever the failurePolicy
			return nil, nil, fmt.Errorf("the handler patches the object of a %s, which has none", operation)
		case err == nil:
			return d, withEffect(p), p.Check()
		}
		status, ok := denialOf(err, &req.Metadata)
		if !ok {
			return nil, nil, err
		}
		if d == nil {
			d = review.Allow()
		}
		d.Deny(status)
		return d, nil, nil
	}
}

// withEffect drops a patch of tests only: it changes nothing, but the API server would
// reinvoke other webhooks for it.
func withEffect(p patch.Patch) patch.Patch {
	if slices.ContainsFunc(p, func(op patch.Operation) bool { return op.Op != patch.Test }) {
		return p
	}
	return nil
}

func newHook[T any](reg registration, hasHandler bool, newCall func() call) *Hook {
	var noHandler error
	if !hasHandler {
		noHandler = fmt.Errorf("webhook %s has no handler", reg.name)
	}
	h := &Hook{
		reg: reg, kinds: kindsOf[T](), newCall: newCall, unknownCalls: new(atomic.Uint64),
		wrong:  errors.Join(joinFields(reg.validate()), checkType[T](reg.name), noHandler),
		noKind: checkKindKnown[T](reg.name), misfit: checkRules[T](&reg),
	}
	return h.checked()
}

// checked sums up what is wrong with a hook, once it is made or changed.
func (h *Hook) checked() *Hook {
	h.invalid = errors.Join(h.wrong, h.misfit, h.checkUnknown())
	if len(h.kinds) == 0 {
		h.invalid = errors.Join(h.invalid, h.noKind)
	}
	return h
}

// joinFields joins field errors, so that errors.As and Unwrap find each of them. It returns nil for
// an empty list.
func joinFields(list field.ErrorList) error {
	errs := make([]error, len(list))
	for i, err := range list {
		errs[i] = err
	}
	return errors.Join(errs...)
}

// Name returns the webhook's name in its registration.
func (h *Hook) Name() string { return h.reg.name }

// Mutating tells a mutating hook from a validating one, which may have the same name.
func (h *Hook) Mutating() bool { return h.reg.mutating }

// Path returns the path the hook is served at: that of the registration's clientConfig, or
// else "/mutate/<name>" or "/validate/<name>".
func (h *Hook) Path() string { return h.reg.path() }

// Check returns everything that is wrong with the registration and with the handler's type, or
// nil. Compiling matchConditions is left to the API server.
func (h *Hook) Check() error { return h.invalid }

// WithKinds returns a hook that accepts these kinds and answers 400 to others. It is needed
// only where a Go type does not follow the convention that its name is the kind and the last
// element of its package path the version, or to narrow what a projection is given: a type that
// is no runtime.Object, which is given every kind otherwise. "*" stands for any group or version.
func (h *Hook) WithKinds(kinds ...metav1.GroupVersionKind) *Hook {
	c := *h
	c.kinds, c.misfit = slices.Clone(kinds), nil
	return c.checked()
}

// DefaultMaxBodyBytes is the largest request body a hook reads, 16 MiB. A review carries
// object and oldObject; the API server limits each to 3 MiB as it was sent to it
// (MaxRequestBodyBytes), and etcd to half of that as it is stored, but JSON may be several times
// the size of the protobuf that arrived, and writes "<" in six bytes. A lower limit would have
// legal objects fail, or pass unseen under failurePolicy Ignore.
const DefaultMaxBodyBytes = 16 << 20

// WithMaxBodyBytes returns a hook that answers 413 to bodies of more than n bytes. Zero means the
// default: MaxBodyBytes of the server's [Options], or else [DefaultMaxBodyBytes]. Negative means no
// limit.
func (h *Hook) WithMaxBodyBytes(n int64) *Hook {
	c := *h
	c.maxBytes = n
	return &c
}

// bodyLimit returns the largest body that the hook reads, in bytes.
func (h *Hook) bodyLimit() int64 { return limit(h.maxBytes, DefaultMaxBodyBytes, math.MaxInt64) }

// WithLogger returns a hook that logs its failures to l, and its decisions at V(1), with the
// keys webhook, requestUID, gvk, namespace, name and operation. Objects are never logged. The
// handler finds the logger in its context (logr.FromContext). Without it a hook uses the
// logger in the context of the HTTP request, or else slog's default.
func (h *Hook) WithLogger(l logr.Logger) *Hook {
	c := *h
	c.logger = &l
	return &c
}

// A Registrar is what hooks are mounted on: the webhook server of a controller-runtime
// manager, mgr.GetWebhookServer(), is one.
type Registrar interface {
	Register(path string, handler http.Handler)
}

// Register mounts hooks at their paths. It mounts none and returns every error at once when a
// registration is invalid or two hooks share a path.
//
// A manager ends the contexts of all calls when it stops. Calls of hooks mounted here go on
// nevertheless, until their deadline; so they do when the API server hangs up, because the two
// look alike.
func Register(on Registrar, hooks ...*Hook) error {
	if err := checkHooks(hooks); err != nil {
		return err
	}
	for _, h := range hooks {
		on.Register(h.Path(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
		}))
	}
	return nil
}
