// SPDX-License-Identifier: Apache-2.0

// Package explain reports which webhooks an API server would call for an object, in which order, and why. It calls no
// webhook. Results that it cannot determine are reported as unknown.
package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/chain"
)

// A Report is the output of the command. Its JSON encoding is stable.
type Report struct {
	// Kubernetes is the version whose rules apply, such as "1.36".
	Kubernetes string `json:"kubernetes"`
	// Source is the source of the configurations: "files", "cluster" or "cluster and files".
	Source string `json:"source"`
	// PoliciesKnown means that the admission policies are known and were considered.
	PoliciesKnown bool     `json:"policiesKnown"`
	Objects       []Object `json:"objects"`
}

// An Object is the explanation for one object: its request, and for each webhook whether it is called and why.
type Object struct {
	// Object is the kind and name. File and Line give the source of an object from a file.
	Object string `json:"object"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	// Error is the reason why the object cannot be explained. The other fields are empty then.
	Error string   `json:"error,omitempty"`
	Hints []string `json:"hints,omitempty"`

	Request *Request `json:"request,omitempty"`
	// Policies are the admission policies, each with one of its bindings. The API server evaluates mutating policies before
	// it calls mutating webhooks, and validating policies before it calls validating webhooks.
	Policies []Policy `json:"policies,omitempty"`
	// Rejection is a rejection without a call: by the API server itself, by a policy, or because of a webhook whose
	// condition cannot be evaluated.
	Rejection *Rejection `json:"rejection,omitempty"`
	// Webhooks are in the order in which the API server evaluates them.
	Webhooks []Webhook `json:"webhooks"`
	// Changing are the mutating webhooks that are called. Later webhooks receive the object with their
	// changes.
	Changing  []string `json:"changing,omitempty"`
	WorstCase *Time    `json:"worstCase,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// A Request is the API request for an object.
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

// A Rejection describes a request that the API server rejects without calling the webhook at fault.
type Rejection struct {
	// By is the webhook whose predicate causes the rejection, or the policy, such as "ValidatingAdmissionPolicy a". It is
	// empty for the API server itself.
	By      string `json:"by,omitempty"`
	Before  string `json:"before"` // "mutating webhooks", "validating webhooks" or "storage"
	Code    int32  `json:"code"`
	Message string `json:"message"`
}

// Called states whether a webhook is called.
type Called string

// The values of Called.
const (
	Yes     Called = "yes"
	No      Called = "no"
	Unknown Called = "unknown"
)

// A Webhook is the explanation for one webhook: whether it is called, and why.
type Webhook struct {
	// Order is the position among all webhooks, from 1.
	Order         int    `json:"order"`
	Type          string `json:"type"` // "mutating" or "validating"
	Configuration string `json:"configuration"`
	Name          string `json:"name"`
	// Static means that the webhook is from a static manifest. Static webhooks come first.
	Static bool   `json:"static,omitempty"`
	Called Called `json:"called"`
	// Decision is the deciding predicate: "Resource", "NamespaceSelector", "ObjectSelector", "Rules",
	// "MatchCondition", "DryRun", "Rejection" or "Matches"; "Configuration" if the configuration cannot be read.
	Decision chain.Reason `json:"decision"`
	Why      string       `json:"why"`
	// Summary is a shorter Why for text output, or empty.
	Summary string `json:"-"`
	// Rejects means that the API server rejects the request because of this webhook, without calling it.
	Rejects bool `json:"rejects,omitempty"`
	// Times is the number of calls. A deletion in two steps has more than one.
	Times int `json:"times,omitempty"`
	// SentAs is the kind that the webhook receives. Converted is true if it differs from the kind of the request.
	SentAs    *metav1.GroupVersionKind `json:"sentAs,omitempty"`
	Converted bool                     `json:"converted,omitempty"`

	FailurePolicy  string `json:"failurePolicy"`
	TimeoutSeconds int32  `json:"timeoutSeconds"`
	// WhenDown describes the result of the request if the webhook does not answer.
	WhenDown string `json:"whenDown"`
	// Reinvocation is nil for validating webhooks.
	Reinvocation *Reinvocation `json:"reinvocation,omitempty"`
	// DependsOn are earlier mutating webhooks whose patches may change the decision.
	DependsOn  []string    `json:"dependsOn,omitempty"`
	Predicates []Predicate `json:"predicates"`
}

// Reinvocation lists the webhooks whose changes cause another call of a webhook.
type Reinvocation struct {
	Policy string `json:"policy"` // "Never" or "IfNeeded"
	// By are later webhooks that may change the object.
	By []string `json:"by,omitempty"`
	// ByAgain are earlier webhooks that cause another call if they change the object in their own
	// second call.
	ByAgain []string `json:"byAgain,omitempty"`
}

// A Predicate is one of the checks that decide whether a webhook is called.
type Predicate struct {
	Predicate chain.Reason `json:"predicate"` // as in Webhook.Decision
	// Condition and Expression are the name and expression of a matchCondition.
	Condition  string                `json:"condition,omitempty"`
	Expression string                `json:"expression,omitempty"`
	Answer     chain.PredicateResult `json:"answer"`
	Detail     string                `json:"detail"`
	// Summary is a shorter Detail for text output, or empty.
	Summary string `json:"-"`
}

// set changes the result and its explanation.
func (p *Predicate) set(answer chain.PredicateResult, detail string) {
	p.Answer, p.Detail, p.Summary = answer, detail, ""
}

// byConfiguration is the decision about a webhook whose configuration cannot be read.
const byConfiguration chain.Reason = "Configuration"

// A Time is the longest time that webhooks can take, in seconds.
type Time struct {
	// Mutating is the sum of the timeouts of mutating webhooks. Again is the sum for their second calls.
	Mutating int32 `json:"mutating"`
	Again    int32 `json:"again"`
	// Validating is the longest timeout of a validating webhook, because the API server calls them in parallel.
	Validating int32 `json:"validating"`
	// Total is the sum, capped at the API server's time limit for a request.
	Total  int32 `json:"total"`
	Capped bool  `json:"capped"`
}

// unknownNamespace returns a namespace whose unknown labels decide whether a webhook is called, or "". If only is not
// empty, it considers just the webhook with this name.
func (r *Report) unknownNamespace(only string) string {
	for _, o := range r.Objects {
		for _, w := range o.Webhooks {
			if w.Called == Unknown && w.Decision == chain.ByNamespaceSelector && (only == "" || only == w.Name) {
				return o.Request.Namespace
			}
		}
	}
	return ""
}

// unknown returns the names of webhooks whose decision is unknown, and the number of objects that cannot be explained.
// If only is not empty, the names are limited to that webhook.
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
