// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// A Case is one input for the check of a law. It has everything that is needed to repeat the check.
type Case struct {
	Law       Law
	Kind      schema.GroupVersionKind // of Object
	Operation admissionv1.Operation
	Object    any          // x, the object of the request
	Old       any          // the stored object that the request replaces with x, or nil
	Before    []any        // objects that the webhook handles before x (L3)
	Edits     []edits.Edit // of x before the first call (L5, L9), or by another party between two calls (L4a, L4b)
	Rival     string       // name of the other webhook (L11, L12)
	Variant   Variant
}

// A Variant is one of several checks of a law. The default check has an empty Variant.
type Variant string

// Variants of L3.
const (
	// Few repeats a request only a few times.
	Few Variant = "few"
	// NextSecond repeats the request in the next second, to find webhooks that write the time. They mostly write whole
	// seconds, and many calls of a run happen in one second.
	NextSecond Variant = "next second"
	// AnotherTime repeats the request after each of Options.Gaps.
	AnotherTime Variant = "another time"
	// AfterRun repeats the request after all other requests of a run. It finds a webhook behind a URL that remembers other
	// objects, because such a webhook has no fresh instances.
	AfterRun Variant = "after the run"
	// Parallel sends the request at the same time as requests for other objects, to one instance.
	Parallel Variant = "at the same time"
	// OtherName repeats the request under a name that another object had before. It finds webhooks that remember
	// objects by name, even if no fresh instance can be started.
	OtherName Variant = "another name"
	// WithoutNamespace repeats the request without metadata.namespace, to find webhooks that read it.
	WithoutNamespace Variant = "without namespace"
)

// SimilarNames is a variant of L5. The first half of the edits adds elements with plain names, and the second half adds
// the same elements with similar names.
const SimilarNames Variant = "similar names"

// ManyNames is a variant of L5. The edits add elements that differ only in their names. It finds webhooks that derive
// one name from several of these names.
const ManyNames Variant = "many names"

// ExplicitZero is a variant of L5. The edit sets a field to 0 or to an empty string where the webhook sets another value.
const ExplicitZero Variant = "zero"

// LateNote is a variant of L4b. The object lacks an annotation or label that it had, and the edit adds it again between
// two calls. A webhook may set a default while the annotation is missing, and keep it, but not an empty value.
const LateNote Variant = "late note"

// CopyOfResult is a variant of L4b. Another party copies a container after the webhook has changed it. The edit adds a
// copy of the container as it was before.
const CopyOfResult Variant = "copy of the result"

// Variants of L6.
const (
	// OlderObject updates an object that is older than the webhook.
	OlderObject Variant = "older object"
	// Deletion removes the last finalizer of an object that is being deleted.
	Deletion Variant = "deletion"
	// SameAgain applies a manifest again.
	SameAgain Variant = "same manifest again"
	// Replaced replaces the stored object by the whole manifest from which it was created.
	Replaced Variant = "replaced by the manifest"
	// ChangedValue changes a value in the manifest and applies it: an annotation, a label, or a field that the webhook
	// changes. The edit sets the new value.
	ChangedValue Variant = "changed value"
	// NoStatus replaces a stored object that has a status by its manifest, which has none.
	NoStatus Variant = "manifest without a status"
)

// IsVariant reports whether a check has the variant.
func IsVariant(v Variant) bool {
	return v == "" || session.UserNamed(string(v)) != nil || slices.Contains([]Variant{
		Few, NextSecond, AnotherTime, AfterRun, Parallel, OtherName, WithoutNamespace, SimilarNames, ManyNames, ExplicitZero, LateNote, CopyOfResult,
		OlderObject, Deletion, SameAgain, Replaced, ChangedValue, NoStatus, AfterCreation, DeletionRequest,
	}, v)
}

// UsesManifest reports whether the check of a variant begins with a manifest, and not with a stored object.
func UsesManifest(v Variant) bool {
	return v == SameAgain || v == Replaced || v == ChangedValue || v == NoStatus
}

// The Variant of a case of L1 or L2 can also be the name of one of session.Users: this user then makes the requests.

// Variants of L1 and L2 for requests after the creation of an object.
const (
	// AfterCreation checks L1 and L2 on updates that change nothing.
	AfterCreation Variant = "after creation"
	// DeletionRequest checks L2 on a DELETE, which has only an old object.
	DeletionRequest Variant = "deletion request"
)
