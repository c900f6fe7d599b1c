// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/callcontext"
	"github.com/admitkit/admitkit/pkg/webhook/internal/registration"
)

// A Hook is one webhook: a registration and its handler. It is an http.Handler and safe for
// concurrent use. Create one with [Mutating] or [Validating]. Its With… methods return changed copies.
type Hook struct {
	reg      *registration.Registration
	kinds    []metav1.GroupVersionKind // that the hook accepts; any kind if empty
	newCall  func() call
	handlers []any // the user's functions; the idempotence harness finds their source code through them
	raw      bool  // the handler takes bytes
	perKind  bool  // each kind has a handler of its own
	maxBytes int64 // see WithMaxBodyBytes
	log      callcontext.HookLog
	errs     hookErrors

	host      *host // nil outside of a Server
	observers []Observer

	admitDeleting bool     // see WithDeletingAdmitted
	chooseMode    ModeFunc // nil: all calls enforce

	unknown      UnknownFieldsPolicy
	unknownCalls *atomic.Uint64 // shared with copies
}

// hookErrors are the errors that Check or ServeHTTP reports, by what they are about.
type hookErrors struct {
	registration error // of the fields of the registration, or its path
	servedFields error // of the fields that ServeHTTP uses
	handler      error // of the handler or its type
	unknownKind  error // the type looks like an API type whose kind is not known
	ruleMismatch error // a rule covers a kind that the type cannot hold
	all          error // set by checked
	serving      error // set by checked: ServeHTTP fails every call with it
}

// Mutating returns a hook that calls mutate with each object and sends the changes as a JSON Patch.
// See [patch.Diff] for what counts as a change.
//
// Unset fields of the registration get defaults: failurePolicy Fail, matchPolicy Equivalent,
// sideEffects None, timeoutSeconds 5, admissionReviewVersions v1 and v1beta1, reinvocationPolicy
// Never, and a namespaceSelector that excludes kube-system and the webhook's own namespace (see
// [Configurations]). The registration is checked by the rules of the API server. [Hook.Check],
// [Configurations], [Register] and [Server.Start] return all errors at once. [Hook.ServeHTTP] says which
// errors make calls fail.
//
// If T is an API type, that is, a runtime.Object with a method DeepCopyObject, the handler gets
// objects of its kind only; see [Hook.WithKinds]. Any other struct is a projection, and its handler
// gets objects of every kind.
//
// On DELETE, Object is nil. A patch never touches apiVersion, kind, metadata.namespace or
// metadata.managedFields: a handler that changes them fails.
func Mutating[T any](reg admissionregistrationv1.MutatingWebhook, mutate func(context.Context, *Request[T]) error) *Hook {
	return typedHook(registration.FromMutating(reg), mutate)
}

// Validating returns a hook that calls validate with each object. The registration and the kinds of
// the objects are handled as in [Mutating]. Changes of the object are discarded.
func Validating[T any](reg admissionregistrationv1.ValidatingWebhook, validate func(context.Context, *Request[T]) error) *Hook {
	return typedHook(registration.FromValidating(reg), validate)
}

func typedHook[T any](reg *registration.Registration, handler func(context.Context, *Request[T]) error) *Hook {
	typed := typedHandler[T]{handle: handler, sideEffects: reg.DeclaresSideEffects(), mutating: reg.Mutating}
	return newHook[T](reg, handler, handler != nil, func() call { return &typedCall[T]{typed: typedObject[T]{typedHandler: typed}} })
}

// MutatingRaw returns a hook whose handler gets the documents as bytes and returns its own patch for
// req.Object. Errors are handled as in [Mutating]. If [patch.Patch.Check] rejects the patch,
// that is a failure to decide, not a denial.
func MutatingRaw(reg admissionregistrationv1.MutatingWebhook, admit func(context.Context, *review.Request) (*review.Decision, patch.Patch, error)) *Hook {
	return rawHook(registration.FromMutating(reg), admit, admit != nil, admit)
}

// ValidatingRaw is [MutatingRaw] for a validating hook.
func ValidatingRaw(reg admissionregistrationv1.ValidatingWebhook, admit func(context.Context, *review.Request) (*review.Decision, error)) *Hook {
	return rawHook(registration.FromValidating(reg), admit, admit != nil, func(ctx context.Context, req *review.Request) (*review.Decision, patch.Patch, error) {
		d, err := admit(ctx, req)
		return d, nil, err
	})
}

func rawHook(reg *registration.Registration, handler any, hasHandler bool, admit admitFunc) *Hook {
	admit = denying(admit)
	h := newHook[review.Request](reg, handler, hasHandler, func() call { return &rawCall{admit: admit} })
	h.raw = true
	return h
}

// newHook returns a hook with one handler, the user's function.
func newHook[T any](reg *registration.Registration, handler any, hasHandler bool, newCall func() call) *Hook {
	var noHandler error
	if !hasHandler {
		noHandler = fmt.Errorf("webhook %s has no handler", reg.Name)
	}
	h := &Hook{
		reg: reg, kinds: registration.KindsOf[T](), newCall: newCall, handlers: []any{handler}, unknownCalls: newCounter(), log: callcontext.HookLog{Name: reg.Name},
		errs: hookErrors{
			handler:      errors.Join(registration.CheckType[T](reg.Name), noHandler),
			unknownKind:  registration.CheckKindKnown[T](reg.Name),
			ruleMismatch: registration.CheckRules[T](reg),
		},
	}
	h.checkFields()
	return h.checked()
}

func newCounter() *atomic.Uint64 { return new(atomic.Uint64) }

// checkFields checks the fields of a new or changed registration.
func (h *Hook) checkFields() {
	h.errs.registration = errors.Join(registration.JoinFields(h.reg.Validate()), h.reg.CheckServedPath())
	h.errs.servedFields = registration.JoinFields(h.reg.ValidateForServing())
}

// checked collects the errors of a new or changed hook.
func (h *Hook) checked() *Hook {
	e := &h.errs
	others := errors.Join(e.handler, e.ruleMismatch, h.checkUnknown())
	if len(h.kinds) == 0 {
		others = errors.Join(others, e.unknownKind)
	}
	e.all, e.serving = errors.Join(e.registration, others), errors.Join(e.servedFields, others)
	return h
}

// Name returns the webhook's name in its registration.
func (h *Hook) Name() string { return h.reg.Name }

// Mutating reports whether the hook is mutating. A validating hook may have the same name.
func (h *Hook) Mutating() bool { return h.reg.Mutating }

// Path returns the path of the hook: the one set by [Hook.WithPath], or else the one in the
// registration's clientConfig, or else "/mutate/<name>" or "/validate/<name>".
func (h *Hook) Path() string { return h.reg.Path() }

// WithPath returns a hook that is served at path, such as "/pods/attach". It replaces the path of the
// registration's clientConfig, also in [Configurations]. A trailing slash is removed, as the API
// server does (DefaultVersionedAPIPath). [Hook.Check] returns an error unless path is absolute and has
// no query, fragment or percent-escapes. For a Service, [Configurations] also requires lowercase DNS
// subdomains between the slashes (ValidateWebhookService).
func (h *Hook) WithPath(path string) *Hook {
	c, reg := *h, *h.reg
	reg.ServedPath = &path
	c.reg = &reg
	c.checkFields()
	return c.checked()
}

// Check returns every error of the registration and of the handler's type. It does not compile
// matchConditions.
func (h *Hook) Check() error { return h.errs.all }

// WithKinds returns a hook that accepts these kinds and answers 400 to all other kinds. "*" stands
// for any group or version. By convention the name of an API type is its kind, and the last
// element of its package path is the version. Only types that break this convention need
// WithKinds. WithKinds also restricts a projection, which otherwise gets every kind.
func (h *Hook) WithKinds(kinds ...metav1.GroupVersionKind) *Hook {
	c := *h
	if h.perKind {
		c.errs.handler = errors.Join(h.errs.handler, fmt.Errorf("webhook %s has a handler for each kind; name kinds with KindHandler.WithKinds instead of Hook.WithKinds, or exclude kinds by the rules", h.Name()))
		return c.checked()
	}
	c.kinds, c.errs.ruleMismatch = slices.Clone(kinds), nil
	return c.checked()
}

// DefaultMaxBodyBytes is the largest request body a hook reads by default, 16 MiB. A review carries
// object and oldObject. The API server limits each of them to 3 MiB as received
// (MaxRequestBodyBytes), and etcd limits each to 1.5 MiB as stored. But JSON may be several times the
// size of protobuf, and it writes "<" in six bytes. With a lower limit, calls with legal objects
// would fail.
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

// limit returns value, or the default for zero, or most for a negative value.
func limit[T int | int64 | time.Duration](value, byDefault, most T) T {
	if value < 0 {
		return most
	}
	return cmp.Or(value, byDefault)
}

// WithLogger returns a hook that logs failures to l, and decisions at V(1), with the keys webhook,
// requestUID, gvk, namespace, name and operation. It never logs objects. The handler gets the logger
// in its context (logr.FromContext). Without WithLogger, a hook uses the logger in the context of the
// HTTP request, or else slog's default.
func (h *Hook) WithLogger(l logr.Logger) *Hook {
	c := *h
	c.log.Logger = &l
	return &c
}

// A Registrar mounts handlers at paths. The webhook server of a controller-runtime manager,
// mgr.GetWebhookServer(), is one.
type Registrar interface {
	Register(path string, handler http.Handler)
}

// Register mounts hooks at their paths. If a registration is invalid or two hooks share a path, it
// mounts none and returns every error.
//
// A manager cancels the contexts of all calls when it stops. Calls of hooks mounted here continue until their deadline.
// They also continue when the API server hangs up, since a hook cannot distinguish a hang-up from a stop of the
// manager.
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

// checkHooks returns every error of the hooks of one server.
func checkHooks(hooks []*Hook) error {
	var errs []error
	paths, names := map[string]string{}, map[string]bool{}
	for i, h := range hooks {
		if h == nil {
			errs = append(errs, fmt.Errorf("hook %d is nil", i))
			continue
		}
		errs = append(errs, h.Check())
		if other, taken := paths[h.Path()]; taken {
			errs = append(errs, fmt.Errorf("webhooks %s and %s share the path %s", other, h.Name(), h.Path()))
		}
		paths[h.Path()] = h.Name()
		key := fmt.Sprint(h.reg.Mutating, h.Name())
		if names[key] {
			errs = append(errs, fmt.Errorf("two webhooks of one configuration have the name %s", h.Name()))
		}
		names[key] = true
	}
	return errors.Join(errs...)
}
