// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"cmp"
	"encoding/json"
	"time"
)

// A Reason explains a verdict, a note or an error of a run: a code and its arguments. Programs decide
// by the code; [Reason.Text] has the words for a person.
type Reason struct {
	Code ReasonCode `json:"code"`
	// The arguments. Each code uses some of them.
	Law     Law           `json:"law,omitempty"`
	Kind    string        `json:"kind,omitempty"`    // such as "apps/v1 Deployment"
	Webhook string        `json:"webhook,omitempty"` // name of a webhook or a rival
	URL     string        `json:"url,omitempty"`
	File    string        `json:"file,omitempty"`
	Path    string        `json:"path,omitempty"`   // field path of an exception
	Names   []string      `json:"names,omitempty"`  // of laws, resources, selectors, keys or fields
	Count   int           `json:"count,omitempty"`  // number of objects, cases or calls
	Of      int           `json:"of,omitempty"`     // total number of objects, cases or calls
	Denied  int           `json:"denied,omitempty"` // number of objects that the webhook denied
	Limit   time.Duration `json:"limit,omitempty"`  // in nanoseconds
	// Detail is the message of the webhook, the API server or the operating system.
	Detail string `json:"detail,omitempty"`
	// Because are the reasons that caused this one.
	Because []Reason `json:"because,omitempty"`

	text string // in the wording of a report, for MarshalJSON
}

// A ReasonCode identifies a kind of reason.
type ReasonCode string

// Codes of errors: an [Error] has one of them. The comment on each code names the fields of Reason that it uses.
const (
	ReasonInvalidOptions  ReasonCode = "InvalidOptions"  // Detail
	ReasonUnknownKinds    ReasonCode = "UnknownKinds"    // no objects can be generated for the rules
	ReasonBadStoredCase   ReasonCode = "BadStoredCase"   // File, Detail
	ReasonAPIServerFailed ReasonCode = "APIServerFailed" // Detail
	ReasonNoHandler       ReasonCode = "NoHandler"       // Detail: newHandler returned nil or panicked
	ReasonNotForFuzz      ReasonCode = "NotForFuzz"      // Names of the options
	ReasonBudgetOfInput   ReasonCode = "BudgetOfInput"   // Limit
)

// Codes for a server that cannot be reached, with its URL and the error in Detail. They appear in an
// [Error], or in Because of ReasonServerLost.
const (
	ReasonUnknownHost          ReasonCode = "UnknownHost"
	ReasonCertificateName      ReasonCode = "CertificateName"
	ReasonCertificateInvalid   ReasonCode = "CertificateInvalid"
	ReasonCertificateUntrusted ReasonCode = "CertificateUntrusted"
	ReasonNotTLS               ReasonCode = "NotTLS"
	ReasonHandshakeEnded       ReasonCode = "HandshakeEnded"
	ReasonConnectionRefused    ReasonCode = "ConnectionRefused"
	ReasonNoConnection         ReasonCode = "NoConnection"
	ReasonWrongPath            ReasonCode = "WrongPath"
)

// Codes for laws that do not apply: see [LawResult.Reason].
const (
	ReasonLawExcluded      ReasonCode = "LawExcluded" // by the options
	ReasonNoUpdateRule     ReasonCode = "NoUpdateRule"
	ReasonNoDryRun         ReasonCode = "NoDryRun"
	ReasonNothingToEdit    ReasonCode = "NothingToEdit"
	ReasonNothingToAdd     ReasonCode = "NothingToAdd"
	ReasonNoParts          ReasonCode = "NoParts"
	ReasonNoPlaceForField  ReasonCode = "NoPlaceForField"
	ReasonNoOtherWebhook   ReasonCode = "NoOtherWebhook"
	ReasonEffectsUnwatched ReasonCode = "EffectsUnwatched" // L7 passes, but effects elsewhere are not observed
)

// Codes for laws that are inconclusive: see [LawResult.Reason].
const (
	ReasonImpure          ReasonCode = "Impure"
	ReasonRunEnded        ReasonCode = "RunEnded"        // before the law was decided
	ReasonNoValidObject   ReasonCode = "NoValidObject"   // Detail
	ReasonNotCalled       ReasonCode = "NotCalled"       // Of objects; Names of the selectors and conditions that exclude them
	ReasonChangedNone     ReasonCode = "ChangedNone"     // Of objects; Denied, Detail
	ReasonChangedFew      ReasonCode = "ChangedFew"      // Count of Of objects; Denied, Detail
	ReasonFewCases        ReasonCode = "FewCases"        // Count of Of cases were decided
	ReasonSamplesNeeded   ReasonCode = "SamplesNeeded"   // Kind, Because: too few objects are changed
	ReasonTriggerSearched ReasonCode = "TriggerSearched" // Of objects with Count keys were not changed either; Names of some keys
	ReasonLawUndecided    ReasonCode = "LawUndecided"    // Kind, Law, Because
	ReasonLawMayBeUnsure  ReasonCode = "LawMayBeUnsure"  // Kind, Because; Detail is the reason of the Allowance
	// ReasonValidSampleNeeded has Kind and Because: the API server would accept no object.
	ReasonValidSampleNeeded ReasonCode = "ValidSampleNeeded"
)

// Codes for incomplete runs: see [Report.Incomplete]. Such a run can also have the code ReasonSamplesNeeded or
// ReasonLawUndecided.
const (
	ReasonSubresourcesOnly  ReasonCode = "SubresourcesOnly" // Names
	ReasonNoAnswer          ReasonCode = "NoAnswer"
	ReasonBudgetSpent       ReasonCode = "BudgetSpent" // Limit
	ReasonInterrupted       ReasonCode = "Interrupted"
	ReasonEndedEarly        ReasonCode = "EndedEarly"        // Detail
	ReasonServerLost        ReasonCode = "ServerLost"        // Because; Detail is the object of the call during which the connection broke
	ReasonCaseNotTried      ReasonCode = "CaseNotTried"      // File, Because
	ReasonBrokenConnections ReasonCode = "BrokenConnections" // Count of Of calls were repeated
)

// Codes for stored cases that cannot be checked again: see [Replayed.Reason].
const (
	ReasonKindNotTried    ReasonCode = "KindNotTried" // Kind
	ReasonObjectRefused   ReasonCode = "ObjectRefused"
	ReasonRivalMissing    ReasonCode = "RivalMissing" // Webhook
	ReasonTimeGapsMissing ReasonCode = "TimeGapsMissing"
	ReasonLawNotApplied   ReasonCode = "LawNotApplied" // Law, Because
	ReasonEditGone        ReasonCode = "EditGone"
)

// Codes for notes: see [Report.Notes].
const (
	ReasonNote            ReasonCode = "Note"            // Detail
	ReasonScopeAssumed    ReasonCode = "ScopeAssumed"    // Kind
	ReasonCaseNotStored   ReasonCode = "CaseNotStored"   // Detail
	ReasonCaseOutdated    ReasonCode = "CaseOutdated"    // File, Because
	ReasonAPIServerLimit  ReasonCode = "APIServerLimit"  // Detail
	ReasonKindsNotTried   ReasonCode = "KindsNotTried"   // Names of the resources of the rules without a sample
	ReasonNothingNew      ReasonCode = "NothingNew"      // Kind; Count of Of objects were tried
	ReasonSampleRefused   ReasonCode = "SampleRefused"   // Kind, Count: the number of the sample; Detail
	ReasonExceptionUnused ReasonCode = "ExceptionUnused" // Path, Law; Detail is the path that would cover a finding
	ReasonSafeIfNeeded    ReasonCode = "SafeIfNeeded"    // the webhook can be called again
	ReasonNotIfNeeded     ReasonCode = "NotIfNeeded"     // Names of the laws that stand in the way
	ReasonSlowCall        ReasonCode = "SlowCall"        // Limit is the time, Detail the object
	ReasonFilled          ReasonCode = "Filled"          // Names of the fields that the webhook fills
	ReasonSwitches        ReasonCode = "Switches"        // Kind; Names of labels and annotations, with their values
	ReasonCallsRepeated   ReasonCode = "CallsRepeated"   // Count; Names of the laws with the broken connections
)

// Codes for what the webhook never changed: see [Report.Untried].
const (
	ReasonNoInitContainer ReasonCode = "NoInitContainer" // Kind: other containers were changed
	ReasonNoUpdate        ReasonCode = "NoUpdate"        // Kind: the rules have UPDATE
)

// String returns the text of the reason with the default hint, which is for the author of a Go test.
func (r Reason) String() string { return r.Text(nil) }

// MarshalJSON adds the text of the reason to its code and arguments.
func (r Reason) MarshalJSON() ([]byte, error) {
	type plain Reason
	return json.Marshal(struct {
		plain
		Text string `json:"text"`
	}{plain(r), cmp.Or(r.text, r.String())})
}

// Is reports whether the reason, or one of the reasons that caused it, has the code.
func (r Reason) Is(code ReasonCode) bool {
	if r.Code == code {
		return true
	}
	for _, b := range r.Because {
		if b.Is(code) {
			return true
		}
	}
	return false
}

// An Error reports that a subject could not be tested.
type Error struct {
	Reason Reason
	cause  error
}

// Error returns the text of the reason.
func (e *Error) Error() string { return "cannot test the webhook: " + e.Reason.String() }

// Unwrap returns the error that caused the failure, or nil.
func (e *Error) Unwrap() error { return e.cause }
