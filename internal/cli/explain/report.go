// SPDX-License-Identifier: Apache-2.0

// Package explain tells which webhooks an API server would ask about an object, in which order,
// and why. It asks none of them. What it cannot tell it says; it guesses nothing.
package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/chain"
)

// A Report is what the command prints; as JSON it is stable.
type Report struct {
	// Kubernetes is the version by whose rules is told, such as "1.36".
	Kubernetes string `json:"kubernetes"`
	// Source is where the configurations are from: "files", "cluster" or "cluster and files".
	Source string `json:"source"`
	// PoliciesKnown is set if MutatingAdmissionPolicies were looked for, and looked at.
	PoliciesKnown bool     `json:"policiesKnown"`
	Objects       []Object `json:"objects"`
}

// An Object is one with the request that is made about it, and what webhooks are asked.
type Object struct {
	// Object is its kind and name; File and Line are where it begins, if it is from a file.
	Object string `json:"object"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	// Error is why nothing can be told about it; then there is nothing else.
	Error string   `json:"error,omitempty"`
	Hints []string `json:"hints,omitempty"`

	Request *Request `json:"request,omitempty"`
	// Rejection is how the API server itself answers, or a webhook that need not even be called for
	// that, such as one with a condition that cannot be evaluated.
	Rejection *Rejection `json:"rejection,omitempty"`
	// Webhooks are in the order in which the API server comes to them.
	Webhooks []Webhook `json:"webhooks"`
	// Changing are the mutating webhooks that are called: those after them are asked about the object
	// as they leave it.
	Changing  []string `json:"changing,omitempty"`
	WorstCase *Time    `json:"worstCase,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// A Request is what the API server is asked.
type Request struct {
	Operation   string                      `json:"operation"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource,omitempty"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Namespace   string                      `json:"namespace,omitempty"`
	Name        string                      `json:"name,omitempty"`
	DryRun      bool                        `json:"dryRun"`
	User        string                      `json:"user"`
	Groups      []string                    `json:"groups,omitempty"`
}

// A Rejection is an answer that is not from a webhook.
type Rejection struct {
	// By is the webhook whose predicate rejects the request, or empty for the API server.
	By      string `json:"by,omitempty"`
	Before  string `json:"before"` // "mutating webhooks", "validating webhooks" or "storage"
	Code    int32  `json:"code"`
	Message string `json:"message"`
}

// Called says whether a webhook is called.
type Called string

// Whether a webhook is called.
const (
	Yes     Called = "yes"
	No      Called = "no"
	Unknown Called = "unknown"
)

// A Webhook is one with what decides whether it is called.
type Webhook struct {
	// Order counts all webhooks, from 1.
	Order         int    `json:"order"`
	Type          string `json:"type"` // "mutating" or "validating"
	Configuration string `json:"configuration"`
	Name          string `json:"name"`
	// Static is set for webhooks of static manifests, which come first.
	Static bool   `json:"static,omitempty"`
	Called Called `json:"called"`
	// Decision is what decides: "Resource", "NamespaceSelector", "ObjectSelector", "Rules",
	// "MatchCondition", "DryRun", "Rejection" or "Matches"; "Configuration" if that cannot be read.
	Decision string `json:"decision"`
	Why      string `json:"why"`
	// Rejects is set if the request is rejected because of this webhook, though it is not called.
	Rejects bool `json:"rejects,omitempty"`
	// Times is how often it is called; more than once in a deletion of two steps.
	Times int `json:"times,omitempty"`
	// SentAs is the kind that it is sent, Converted whether that is another than the request's.
	SentAs    *metav1.GroupVersionKind `json:"sentAs,omitempty"`
	Converted bool                     `json:"converted,omitempty"`

	FailurePolicy  string `json:"failurePolicy"`
	TimeoutSeconds int32  `json:"timeoutSeconds"`
	// WhenDown is what becomes of the request if it does not answer.
	WhenDown string `json:"whenDown"`
	// Reinvocation is for mutating webhooks.
	Reinvocation *Reinvocation `json:"reinvocation,omitempty"`
	// DependsOn are the mutating webhooks before it whose patches may change whether it is called.
	DependsOn  []string    `json:"dependsOn,omitempty"`
	Predicates []Predicate `json:"predicates"`
}

// Reinvocation says whose changes have a webhook called again.
type Reinvocation struct {
	Policy string `json:"policy"` // "Never" or "IfNeeded"
	// By are webhooks after it that may change the object; its own change has it not called again.
	By []string `json:"by,omitempty"`
	// ByAgain are webhooks before it that have it called again if they change the object when they
	// themselves are called again.
	ByAgain []string `json:"byAgain,omitempty"`
}

// A Predicate is one of those on which it depends whether a webhook is called, in the API server's order.
type Predicate struct {
	Predicate string `json:"predicate"` // as in Decision
	// Condition and Expression are those of a matchCondition.
	Condition  string `json:"condition,omitempty"`
	Expression string `json:"expression,omitempty"`
	Answer     string `json:"answer"` // "Holds", "Fails", "Errs" or "Unknown"
	Detail     string `json:"detail"`
}

// A Time is how long webhooks may take, in seconds.
type Time struct {
	// Mutating webhooks are called one after the other; Again is for those that are called again.
	Mutating int32 `json:"mutating"`
	Again    int32 `json:"again"`
	// Validating webhooks are called at the same time.
	Validating int32 `json:"validating"`
	// Total is all that, or the time that the API server gives to a request.
	Total  int32 `json:"total"`
	Capped bool  `json:"capped"`
}

// unknownNamespace is a namespace that would have to be known to tell whether a webhook is called.
func (r *Report) unknownNamespace(only string) string {
	for _, o := range r.Objects {
		for _, w := range o.Webhooks {
			if w.Called == Unknown && w.Decision == string(chain.ByNamespaceSelector) && (only == "" || only == w.Name) {
				return o.Request.Namespace
			}
		}
	}
	return ""
}

// unknown are the names of webhooks of which it could not be told whether they are called, and how many
// objects there are of which nothing can be told. With only, no other webhook counts.
func (r *Report) unknown(only string) (webhooks []string, objects int) {
	for _, o := range r.Objects {
		if o.Error != "" {
			objects++
		}
		for _, w := range o.Webhooks {
			if w.Called == Unknown && (only == "" || only == w.Name) {
				webhooks = append(webhooks, w.Name)
			}
		}
	}
	return webhooks, objects
}
