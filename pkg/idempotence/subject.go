// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// A Subject is the webhook, or several webhooks, under test. [Hooks], [Handler], [URL] and [Together] return one.
type Subject struct{ webhooks []*session.Webhook }

// A Hook is a handler that knows its registration. The hooks of package webhook implement it.
type Hook interface {
	http.Handler
	// MutatingWebhook returns the registration, or nil for a validating hook.
	MutatingWebhook() *admissionregistrationv1.MutatingWebhook
}

// Hooks returns a subject of the mutating hooks that newHooks returns, with their own registrations. Validating hooks are
// left out. Several mutating hooks are tested together, as by [Together]. newHooks creates instances, as newHandler does for
// [Handler], and is called even more often. Each call must return the same hooks in the same order.
func Hooks[H Hook](newHooks func() []H) Subject {
	var all Subject
	for i, hook := range newHooks() {
		if registration := hook.MutatingWebhook(); registration != nil {
			all = Together(all, Handler(*registration, func() http.Handler { return newHooks()[i] }))
		}
	}
	return all
}

// Handler returns a subject that is served in this process. newHandler creates an instance, like a restart of the
// server: state outside of the returned handler is shared by all instances. The harness calls newHandler thousands of
// times, so create slow parts that keep no state of requests (a scheme, a client, templates) outside of it. The
// registration says when the webhook is called; its clientConfig is ignored.
//
// Most calls are made one after the other on one goroutine. A handler or newHandler that locks its thread
// (runtime.LockOSThread) must unlock it before it returns: otherwise the process ends with a fatal error.
func Handler(registration admissionregistrationv1.MutatingWebhook, newHandler func() http.Handler) Subject {
	return Subject{[]*session.Webhook{{
		MutatingWebhook: registration, InProcess: true, NewHandler: newHandler,
	}}}
}

// URL returns a subject for a webhook behind a URL. Several URLs are replicas of one webhook, which must agree (L3).
// client must trust the server's certificate. If client is nil, the default client trusts the root CAs of this machine
// and uses no proxy. Redirects are followed as the API server does.
//
// If the server cannot be reached at the start, [Run] fails. If it becomes unreachable later, the report is incomplete.
// Neither fails a law. A call whose connection breaks is repeated once.
func URL(registration admissionregistrationv1.MutatingWebhook, client *http.Client, urls ...string) Subject {
	if client == nil {
		client = session.DefaultClient()
	}
	return Subject{[]*session.Webhook{{MutatingWebhook: registration, Client: client, URLs: urls}}}
}

// Together returns a subject of several webhooks that serve one cluster, in this order. All of them together must be
// safe to call again, and each webhook is a rival of the others.
func Together(subjects ...Subject) Subject {
	var all Subject
	for _, s := range subjects {
		all.webhooks = append(all.webhooks, s.webhooks...)
	}
	return all
}

// prepare returns a validated copy of the subject. Its calls record failures in connection.
func (s Subject) prepare(connection *session.Connection) (Subject, error) {
	var out Subject
	var errs []error
	for _, w := range s.webhooks {
		prepared, err := w.Prepare(connection)
		out.webhooks, errs = append(out.webhooks, prepared), append(errs, err)
	}
	if len(s.webhooks) == 0 {
		errs = append(errs, errors.New("no webhook to test"))
	}
	return out, errors.Join(errs...)
}

// names returns the names of the webhooks.
func (s Subject) names() (names []string) {
	for _, w := range s.webhooks {
		names = append(names, w.Name)
	}
	return names
}

// subresourcesOnly returns the resources of the rules if all of them are subresources, for which the harness generates
// no objects. Otherwise it returns nil.
func (s Subject) subresourcesOnly() (names []string) {
	for _, w := range s.webhooks {
		for _, rule := range w.Rules {
			for _, resource := range rule.Resources {
				if _, part, ok := strings.Cut(resource, "/"); !ok || part == "*" {
					return nil
				}
				if !slices.Contains(names, resource) {
					names = append(names, resource)
				}
			}
		}
	}
	return names
}
