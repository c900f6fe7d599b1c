// SPDX-License-Identifier: Apache-2.0

// Package chain runs API requests through webhooks as kube-apiserver does. It returns every webhook call in order,
// each patch, and the reason why a webhook was not called.
//
// Two engines implement one interface. [New] returns an engine that runs the API server's own admission code
// (k8s.io/apiserver) in this process. It needs no cluster and no etcd. [Connect] returns an engine that sends requests
// to a real API server. A webhook is an http.Handler in this process, or a server in any language at the address in its
// clientConfig.
//
// [Result.Limits] lists the differences from what a real API server would have done.
package chain

import (
	"context"
	"net/http"

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
	// Namespace and Name are those of the object. They may be empty if the object has them. CONNECT
	// requires them.
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
	// Evaluations are the evaluations of admission policies, in order.
	Evaluations []Evaluation
	// Warnings are the warnings that the client receives, in order.
	Warnings []string
	// Annotations are the annotations of the audit event.
	Annotations []Annotation
	// Webhooks has an entry for each webhook, in the order in which the API server calls them.
	Webhooks []Selection
	// Passes is how often the API server ran the whole admission: more than once if another
	// request changed the stored object meanwhile. Calls has the calls of all passes.
	Passes int
	// Limits lists the differences from what a real API server would have done with this request.
	Limits []Limit
}

// Admitted reports whether the request passed admission: Rejection is nil.
func (r *Result) Admitted() bool { return r.Rejection == nil }
