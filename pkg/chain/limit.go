// SPDX-License-Identifier: Apache-2.0

package chain

// A Limit is one thing that the engine did not do as a real API server would have done.
type Limit struct {
	Code LimitCode
	// Message describes the limit in a sentence.
	Message string
}

// String returns the message.
func (l Limit) String() string { return l.Message }

// A LimitCode identifies a kind of [Limit].
type LimitCode string

// The limits of an engine in this process.
const (
	// NoSchema: the custom resource has no CustomResourceDefinition in Options.CRDs.
	NoSchema LimitCode = "NoSchema"
	// NoDefaults: Options.Default is nil.
	NoDefaults LimitCode = "NoDefaults"
	// NoValidation: Options.Validate is nil.
	NoValidation LimitCode = "NoValidation"
	// NoSubresourceLogic: the checks and changes that only this subresource makes are left out.
	NoSubresourceLogic LimitCode = "NoSubresourceLogic"
	// FieldsNotSet: the API server sets some fields before it calls validating webhooks.
	FieldsNotSet LimitCode = "FieldsNotSet"
	// NoPlugins: in-tree plugins that may change the object do not run.
	NoPlugins LimitCode = "NoPlugins"
	// NotConverted: a webhook is registered for an equivalent resource that needs conversion.
	NotConverted LimitCode = "NotConverted"
	// NoAuthorizer: a matchCondition uses the authorizer and Options.Authorizer is nil.
	NoAuthorizer LimitCode = "NoAuthorizer"
)

// The limits of an engine that uses a real API server.
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
