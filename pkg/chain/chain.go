// SPDX-License-Identifier: Apache-2.0

// Package chain runs API requests through webhooks as kube-apiserver does, and tells all that
// happened: each call in order, what was patched, and why a webhook was not called.
//
// There are two engines behind one interface. [New] makes one that runs the API server's own
// admission code (k8s.io/apiserver) in this process: no cluster, no etcd and, unless asked for,
// no sockets. [Connect] makes one that sends dry-run requests to a real API server. Webhooks
// are plain http.Handlers, or servers at their URLs, in any language.
//
// What an engine cannot do as a real API server would, it reports in [Result.Limits].
package chain

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Engine admits requests. It is safe for concurrent use.
type Engine interface {
	// Admit runs one request through all webhooks. That webhooks, or the API server, reject it
	// is a Result; an error means that the engine could not tell what would happen.
	Admit(ctx context.Context, req Request) (*Result, error)
	// Close gives back what the engine holds.
	Close() error
}

// Webhooks are the configurations of an engine, and who answers their calls.
type Webhooks struct {
	// Mutating and Validating are as a user writes them: defaults are filled in, and what the
	// API server would refuse is an error.
	Mutating   []*admissionregistrationv1.MutatingWebhookConfiguration
	Validating []*admissionregistrationv1.ValidatingWebhookConfiguration
	// Handlers answer the calls of webhooks, by the name of the webhook, whatever its
	// clientConfig says. A webhook without one is called where its clientConfig says.
	Handlers map[string]http.Handler
}

// A Request is what a client asks of the API server.
type Request struct {
	Operation admissionv1.Operation
	// Resource and SubResource are what the client addresses.
	Resource    metav1.GroupVersionResource
	SubResource string
	// Namespace and Name are those of the object, where it does not tell them itself, as on
	// DELETE and CONNECT.
	Namespace, Name string
	// Object is the JSON of the new object, with apiVersion and kind: nil on DELETE. On CONNECT it
	// is the options object, such as a PodExecOptions.
	Object []byte
	// OldObject is the JSON of the object as it is stored, for UPDATE and DELETE.
	OldObject []byte
	// DryRun and FieldManager are options of the request.
	DryRun       bool
	FieldManager string
	// User is who asks; empty, it is "admin" in system:masters.
	User authenticationv1.UserInfo
}

// A Result is what became of a request.
type Result struct {
	// Object is the JSON of the object as it would be stored; nil if rejected, and on DELETE.
	Object []byte
	// Rejection is what the client reads if the request was rejected, or nil.
	Rejection *metav1.Status
	// Calls are the calls of webhooks in the order in which they began. Validating webhooks are
	// called at the same time: they are in the order of their configurations.
	Calls []Call
	// Warnings are what the client is shown, in order.
	Warnings []string
	// Annotations are added to the audit event.
	Annotations []Annotation
	// Webhooks tell of each webhook, in the order in which the API server asks them, whether it
	// was called and why.
	Webhooks []Selection
	// Passes is how often the API server ran the whole admission: more than once if another
	// request changed the stored object meanwhile. Calls has the calls of all passes.
	Passes int
	// Limits are the things that the engine did not do as a real API server would have done with
	// this request.
	Limits []Limit
}

// Admitted reports whether the request was not rejected.
func (r *Result) Admitted() bool { return r.Rejection == nil }

// A Call is one call of a webhook.
type Call struct {
	Configuration, Webhook string
	Mutating               bool
	// Round is 0, or 1 for a reinvocation. Index is the webhook's place among all webhooks of its
	// sort, as in the API server's audit annotations; for validating ones among those that match.
	Round, Index int
	// Request and Response are the bodies as they were sent. An answer that is not from this
	// call's server, because it never came, is nil; Status is then 0.
	Request, Response []byte
	Status            int
	// Attempts is how often the body was sent: again where an answer redirects, or asks for it with
	// Retry-After. Response and Status are of the last attempt. It is 0 if the API server failed
	// before it could send anything.
	Attempts int
	// Patch is the JSON Patch of the answer, if it has one. Mutated reports whether the API
	// server considered the object changed by it, and so may reinvoke other webhooks.
	Patch   json.RawMessage
	Mutated bool
	Effect  Effect
	// Error is why the outcome is Failed or FailedOpen, or the message of a denial.
	Error    string
	Duration time.Duration
}

// An Effect is what the API server made of a call.
type Effect string

// The outcomes of a call.
const (
	// Allowed is an answer that allows the request, with or without a patch.
	Allowed Effect = "Allowed"
	// Denied is an answer that does not: the request is rejected, whatever the failurePolicy.
	Denied Effect = "Denied"
	// Failed is a call without a usable answer that rejects the request: the failurePolicy is
	// Fail, or the patch cannot be applied, which no policy forgives.
	Failed Effect = "Failed"
	// FailedOpen is a call without a usable answer under failurePolicy Ignore.
	FailedOpen Effect = "FailedOpen"
)

// An Annotation is one that the API server, or a webhook, adds to the audit event.
type Annotation struct {
	Key, Value string
	// Level is the audit level from which on it is recorded: Metadata or Request.
	Level string
}

// A Selection says whether a webhook was called for a request, and why.
type Selection struct {
	Configuration, Webhook string
	Mutating               bool
	// Index is the webhook's place among all webhooks of its sort.
	Index  int
	Called bool
	// Reason is what decided: the first thing that keeps the webhook from being called, or
	// [Matches].
	Reason Reason
	// Detail says more, in a sentence: the rule that matches, the selector or condition that does
	// not.
	Detail string
}

// A Reason is what decides whether a webhook is called. They are in the order in which the
// API server looks at them (generic.Webhook.ShouldCallHook).
type Reason string

// The decisions.
const (
	// ByResource is for resources that no webhook is asked about, such as webhook configurations.
	ByResource          Reason = "Resource"
	ByNamespaceSelector Reason = "NamespaceSelector"
	ByObjectSelector    Reason = "ObjectSelector"
	ByRules             Reason = "Rules"
	ByMatchCondition    Reason = "MatchCondition"
	// ByDryRun is a webhook with side effects that is asked about a dry run: that rejects the
	// request.
	ByDryRun Reason = "DryRun"
	// ByRejection is a webhook that would have been called, had not another rejected the request
	// before.
	ByRejection Reason = "Rejection"
	// Matches is a webhook that was called.
	Matches Reason = "Matches"
)
