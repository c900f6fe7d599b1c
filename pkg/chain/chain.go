// SPDX-License-Identifier: Apache-2.0

// Package chain runs API requests through webhooks as kube-apiserver does. It returns every webhook call in order,
// each patch, and the reason why a webhook was not called.
//
// Two engines implement one interface. [New] returns an engine that runs the API server's own admission code
// (k8s.io/apiserver) in this process. It needs no cluster and no etcd, and opens sockets only to call webhooks at
// URLs. [Connect] returns an engine that sends requests to a real API server. Webhooks are http.Handlers, or servers
// at URLs in any language.
//
// [Result.Limits] lists what an engine did not do as a real API server would have done.
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

// An Engine runs requests through webhooks. It is safe for concurrent use.
type Engine interface {
	// Admit runs one request through all webhooks. A rejection by a webhook or the API server is
	// part of the Result. An error means that the engine could not run the request.
	Admit(ctx context.Context, req Request) (*Result, error)
	// Close releases the resources of the engine.
	Close() error
}

// Webhooks are the webhook configurations of an engine and the handlers that answer the calls.
type Webhooks struct {
	// Mutating and Validating are the configurations as written by a user. The engine sets the
	// defaults, and returns an error if the API server would reject a configuration.
	Mutating   []*admissionregistrationv1.MutatingWebhookConfiguration
	Validating []*admissionregistrationv1.ValidatingWebhookConfiguration
	// Handlers answer the calls of the webhooks with these names, instead of the servers in their
	// clientConfigs. A webhook without a handler is called at the address in its clientConfig.
	Handlers map[string]http.Handler
}

// A Request is a client's request to the API server.
type Request struct {
	Operation admissionv1.Operation
	// Resource and SubResource are the resource in the request path.
	Resource    metav1.GroupVersionResource
	SubResource string
	// Namespace and Name are those of the object. They may be empty if the object has them, and
	// are needed on CONNECT.
	Namespace, Name string
	// Object is the JSON of the new object, with apiVersion and kind. It is nil on DELETE. On
	// CONNECT it is the options object, such as a PodExecOptions.
	Object []byte
	// OldObject is the JSON of the stored object, for UPDATE and DELETE.
	OldObject []byte
	// DryRun and FieldManager are options of the request.
	DryRun       bool
	FieldManager string
	// User is the requesting user. If empty, it is "admin" in the group system:masters.
	User authenticationv1.UserInfo
}

// A Result describes how the API server would process a request.
type Result struct {
	// Object is the JSON of the object as it would be stored. It is nil on DELETE and if the
	// request was rejected.
	Object []byte
	// Rejection is the status that the client receives if the request was rejected, or nil.
	Rejection *metav1.Status
	// Calls are the calls of webhooks in the order in which they began. Validating webhooks are
	// called concurrently, so their calls are in the order of the configurations.
	Calls []Call
	// Warnings are the warnings that the client receives, in order.
	Warnings []string
	// Annotations are the annotations of the audit event.
	Annotations []Annotation
	// Webhooks has an entry for each webhook, in the order in which the API server calls them.
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
	// Round is 0, or 1 for a reinvocation. Index is the webhook's index as in the API server's
	// audit annotations: among all mutating webhooks, or among the validating webhooks that match.
	Round, Index int
	// Request and Response are the bodies as they were sent. Without a response, Response is nil
	// and Status is 0.
	Request, Response []byte
	Status            int
	// Attempts counts how often the body was sent. The API server repeats it after a redirect or
	// a response with Retry-After. Response and Status belong to the last attempt. Attempts is 0
	// if the API server failed before it sent the body.
	Attempts int
	// Patch is the JSON Patch of the response, or nil. Mutated reports whether the API server
	// treated the object as changed by it, which can reinvoke other webhooks.
	Patch   json.RawMessage
	Mutated bool
	Effect  Effect
	// Error is the error if Effect is Failed or FailedOpen, or the message of a denial.
	Error    string
	Duration time.Duration
}

// An Effect is the effect of a webhook call on the request.
type Effect string

// The effects of a call.
const (
	// Allowed: the response allows the request, with or without a patch.
	Allowed Effect = "Allowed"
	// Denied: the response denies the request, which is rejected whatever the failurePolicy is.
	Denied Effect = "Denied"
	// Failed: the call failed and the request is rejected, because failurePolicy is Fail or
	// because the patch cannot be applied.
	Failed Effect = "Failed"
	// FailedOpen: the call failed and failurePolicy is Ignore, so the request continues.
	FailedOpen Effect = "FailedOpen"
)

// An Annotation is an audit annotation that the API server or a webhook adds to the audit event.
type Annotation struct {
	Key, Value string
	// Level is the lowest audit level at which it is recorded: Metadata or Request.
	Level string
}

// A Selection records whether a webhook was called for a request, and why.
type Selection struct {
	Configuration, Webhook string
	Mutating               bool
	// Index is the webhook's index among all mutating or all validating webhooks.
	Index  int
	Called bool
	// Reason is the first reason why the webhook was not called, or [Matches].
	Reason Reason
	// Detail describes the reason: the rule that matches, or the selector or condition that does
	// not match.
	Detail string
}

// A Reason is the predicate or event that decided whether a webhook was called. The constants are in the order in
// which the API server evaluates the predicates (generic.Webhook.ShouldCallHook).
type Reason string

// The reasons why a webhook was called or not.
const (
	// ByResource: the API server calls no webhook for this resource, such as webhook configurations.
	ByResource          Reason = "Resource"
	ByNamespaceSelector Reason = "NamespaceSelector"
	ByObjectSelector    Reason = "ObjectSelector"
	ByRules             Reason = "Rules"
	ByMatchCondition    Reason = "MatchCondition"
	// ByDryRun: the webhook has side effects and the request is a dry run, so the API server
	// rejects the request.
	ByDryRun Reason = "DryRun"
	// ByRejection: the webhook matches, but the request was rejected before its turn.
	ByRejection Reason = "Rejection"
	// Matches: the webhook was called.
	Matches Reason = "Matches"
)
