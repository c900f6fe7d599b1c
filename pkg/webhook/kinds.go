// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/callcontext"
	"github.com/admitkit/admitkit/pkg/webhook/internal/object"
	"github.com/admitkit/admitkit/pkg/webhook/internal/registration"
)

// A KindHandler is the handler of a hook for the objects of one type. Create one with [On].
type KindHandler struct {
	handled   registration.Handled
	handle    any // the user's function
	errs      func(webhook string) (handler, unknownKind error)
	newObject func(sideEffects, mutating bool) objectCall
}

// An objectCall is the object of one call. *typedObject[T] implements it for each type T.
type objectCall interface {
	read(body []byte, offset int) (end int, err error)
	accept(x *exchange, wire *review.Request) (*review.Decision, error)
	call(x *exchange) outcome
	changes(x *exchange) (patch.Patch, error)
}

// On returns a handler for objects of type T, to be passed to [MutatingKinds] or [ValidatingKinds]. T and the handler
// are as in [Mutating] and [Validating]. If T is a projection, name the kinds with [KindHandler.WithKinds].
func On[T any](handle func(context.Context, *Request[T]) error) KindHandler {
	return onPart(handle, nil)
}

// onPart returns a KindHandler for the part of the objects that a view shows.
func onPart[T any](handle func(context.Context, *Request[T]) error, v *view) KindHandler {
	return KindHandler{
		handled: registration.HandledBy[T](),
		handle:  handle,
		errs: func(webhook string) (handler, unknownKind error) {
			if handle == nil {
				handler = fmt.Errorf("webhook %s has no handler for %T", webhook, *new(T))
			}
			return errors.Join(registration.CheckType[T](webhook), handler), registration.CheckKindKnown[T](webhook)
		},
		newObject: func(sideEffects, mutating bool) objectCall {
			return &typedObject[T]{typedHandler: typedHandler[T]{handle: handle, sideEffects: sideEffects, mutating: mutating, view: v}}
		},
	}
}

// WithKinds returns a handler for these kinds instead of those of its type, as [Hook.WithKinds] does.
func (k KindHandler) WithKinds(kinds ...metav1.GroupVersionKind) KindHandler {
	same := len(kinds) == 1 && len(k.handled.Kinds) == 1 && kinds[0].Kind == k.handled.Kinds[0].Kind
	if k.handled.Kinds = slices.Clone(kinds); !same {
		k.handled.Resource = ""
	}
	return k
}

// MutatingKinds returns a hook with a handler for each of several kinds. It has one registration and one path:
//
//	webhook.MutatingKinds(reg, webhook.On(mutatePod), webhook.On(mutateDeployment))
//
// The handlers are as in [Mutating]. A request of a kind without a handler fails. Besides the errors listed in
// [Mutating], [Hook.Check] returns an error if two handlers take the same kind, or if no rule covers the kind of a
// handler for a built-in type. If all types are built-in, it also returns an error for a rule that covers a resource
// without a handler, as a rule with a wildcard does. For custom types and projections, the resources are not known.
func MutatingKinds(reg admissionregistrationv1.MutatingWebhook, handlers ...KindHandler) *Hook {
	return kindsHook(registration.FromMutating(reg), handlers)
}

// ValidatingKinds is [MutatingKinds] for a validating hook.
func ValidatingKinds(reg admissionregistrationv1.ValidatingWebhook, handlers ...KindHandler) *Hook {
	return kindsHook(registration.FromValidating(reg), handlers)
}

func kindsHook(reg *registration.Registration, handlers []KindHandler) *Hook {
	h := handlersHook(reg, handlers)
	var handled []registration.Handled
	for _, k := range handlers {
		handled = append(handled, k.handled)
	}
	h.errs.ruleMismatch = reg.CheckHandlers(handled)
	return h.checked()
}

// handlersHook returns a hook whose rules are not compared with the kinds of the handlers.
func handlersHook(reg *registration.Registration, handlers []KindHandler) *Hook {
	handlers = slices.Clone(handlers)
	sideEffects := reg.DeclaresSideEffects()
	h := &Hook{
		reg: reg, log: callcontext.HookLog{Name: reg.Name}, perKind: true, unknownCalls: newCounter(),
		newCall: func() call { return &kindsCall{handlers: handlers, sideEffects: sideEffects} },
	}
	if len(handlers) == 0 {
		h.errs.handler = fmt.Errorf("webhook %s has no handler", reg.Name)
	}
	for i, k := range handlers {
		h.kinds, h.handlers = append(h.kinds, k.handled.Kinds...), append(h.handlers, k.handle)
		h.errs.handler = errors.Join(h.errs.handler, checkKindHandler(reg.Name, k, handlers[:i]))
	}
	h.checkFields()
	return h.checked()
}

// checkKindHandler returns the errors of k, and an error for each handler in before that takes a kind of k.
func checkKindHandler(webhook string, k KindHandler, before []KindHandler) error {
	if k.newObject == nil {
		return fmt.Errorf("webhook %s: a KindHandler is empty; create it with On", webhook)
	}
	handler, unknownKind := k.errs(webhook)
	if len(k.handled.Kinds) == 0 {
		return errors.Join(handler, unknownKind, fmt.Errorf("webhook %s: %s can hold every kind; name its kinds with KindHandler.WithKinds", webhook, k.handled.Type))
	}
	for _, other := range before {
		if kind, ok := k.handled.SharedKind(other.handled); ok {
			handler = errors.Join(handler, fmt.Errorf("webhook %s: the handlers for %s and %s both get kind %s; name the kinds of each with KindHandler.WithKinds",
				webhook, other.handled.Type, k.handled.Type, registration.KindText(kind)))
		}
	}
	return handler
}

// A kindsCall is a call of a hook with a handler for each kind.
type kindsCall struct {
	exchange
	handlers    []KindHandler
	sideEffects bool
	kind        metav1.GroupVersionKind // the kind that object was created for
	object      objectCall              // nil until the kind is known
}

// ReadObject decodes the object if the review has the kind before the object, as the API server writes it. Otherwise
// accept decodes the object.
func (c *kindsCall) ReadObject(body []byte, offset int) (end int, err error) {
	if c.choose(c.wire.Kind); c.object == nil {
		return skipObject(body, offset)
	}
	return c.object.read(body, offset)
}

// choose creates the object for a kind, or sets it to nil if no handler takes the kind.
func (c *kindsCall) choose(kind metav1.GroupVersionKind) {
	if c.object != nil && c.kind == kind {
		return
	}
	c.kind, c.object = kind, nil
	for _, k := range c.handlers {
		if k.handled.Takes(kind) {
			c.object = k.newObject(c.sideEffects, c.hook.reg.Mutating)
			return
		}
	}
}

func (c *kindsCall) accept(wire *review.Request) (*review.Decision, error) {
	if c.object == nil || c.kind != wire.Kind {
		c.choose(wire.Kind) // CheckHandled has checked that there is a handler
		if wire.Object != nil {
			if _, err := c.object.read(wire.Object, 0); err != nil {
				return nil, err
			}
		}
	}
	return c.object.accept(&c.exchange, wire)
}

func (c *kindsCall) handle() outcome { return c.object.call(&c.exchange) }

func (c *kindsCall) changes(patch.Patch) (patch.Patch, error) { return c.object.changes(&c.exchange) }

// unknownIn returns the paths of the fields of a document that T does not have.
func unknownIn[T any](document []byte) []string { return object.UnknownFields[T](document, "") }
