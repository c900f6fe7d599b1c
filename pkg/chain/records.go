// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"time"
)

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
	// treated the object as changed by the patch. A change can reinvoke other webhooks.
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

// A Limit is one difference from what a real API server would have done.
type Limit struct {
	Code LimitCode
	// Message describes the limit in a sentence.
	Message string
}

// String returns the message.
func (l Limit) String() string { return l.Message }

// A LimitCode identifies a kind of [Limit].
type LimitCode string

// The limits of the engine that New returns.
const (
	// NoSchema: there is no schema for the custom resource, because it has no CustomResourceDefinition in Options.CRDs.
	NoSchema LimitCode = "NoSchema"
	// NoDefaults: the engine sets no defaults, because Options.Default is nil.
	NoDefaults LimitCode = "NoDefaults"
	// NoValidation: the engine validates only the metadata, because Options.Validate is nil.
	NoValidation LimitCode = "NoValidation"
	// NoSubresourceLogic: the engine leaves out the checks and changes that the API server makes only for the requested
	// subresource.
	NoSubresourceLogic LimitCode = "NoSubresourceLogic"
	// FieldsNotSet: the API server sets some fields before it calls validating webhooks, and this engine does not.
	FieldsNotSet LimitCode = "FieldsNotSet"
	// NoPlugins: in-tree plugins that may change the object do not run.
	NoPlugins LimitCode = "NoPlugins"
	// NotConverted: a webhook is registered for an equivalent resource to which this engine cannot convert the object.
	NotConverted LimitCode = "NotConverted"
	// NoAuthorizer: a matchCondition uses the authorizer variable, and Options.Authorizer is nil.
	NoAuthorizer LimitCode = "NoAuthorizer"
)

// The limits of the engine that Connect returns.
const (
	// OldObjectDiffers: the API server stored the old object with other values.
	OldObjectDiffers LimitCode = "OldObjectDiffers"
	// MutatedDerived: Call.Mutated is derived from the patch, because there is no audit log.
	MutatedDerived LimitCode = "MutatedDerived"
	// NoAnnotations: there are no audit annotations, because there is no audit log.
	NoAnnotations LimitCode = "NoAnnotations"
	// OtherWebhooks: webhooks that do not belong to the engine may have been called.
	OtherWebhooks LimitCode = "OtherWebhooks"
	// AdmittedAgain: the API server ran the admission of the request more than once.
	AdmittedAgain LimitCode = "AdmittedAgain"
	// SelectionUnknown: the reason why a webhook was not called is unknown.
	SelectionUnknown LimitCode = "SelectionUnknown"
	// NotConnected: no connection was opened for a CONNECT request.
	NotConnected LimitCode = "NotConnected"
	// NotAuthorized: the API server's authorization rejected the request before admission.
	NotAuthorized LimitCode = "NotAuthorized"
	// ExtraLowercased: a key of the user's extra was sent in lower case.
	ExtraLowercased LimitCode = "ExtraLowercased"
)
