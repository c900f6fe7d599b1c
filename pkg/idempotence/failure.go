// SPDX-License-Identifier: Apache-2.0

package idempotence

// A FailureMode is a way in which a law fails.
type FailureMode string

// The failure modes. The comments say what happened.
const (
	FailureGrows              FailureMode = "grows"         // a repeated call adds something
	FailureChanges            FailureMode = "changes"       // a repeated call changes something
	FailureNoOpPatch          FailureMode = "no-op patch"   // a patch that changes nothing
	FailureNeverSettles       FailureMode = "never settles" // two webhooks change the object forever
	FailureInvalid            FailureMode = "invalid"       // the API server refuses the result
	FailureInvalidOnWindows   FailureMode = "invalid on Windows"
	FailureServerError        FailureMode = "server error" // no answer, or an HTTP error
	FailureHangs              FailureMode = "hangs"        // no answer within the timeout, to all calls or for some objects
	FailureDenied             FailureMode = "denied"       // the webhook denies its own result
	FailureDeniedLater        FailureMode = "denied later" // the webhook denies an edit only after its first call
	FailureDecidesDifferently FailureMode = "decides differently"
	FailureVaries             FailureMode = "varies" // one request, two results
	FailureReadsNamespace     FailureMode = "reads metadata.namespace"
	FailureAccumulates        FailureMode = "accumulates"    // an edit makes the webhook add its parts again
	FailureTreatedUnlike      FailureMode = "treated unlike" // a late addition is treated differently from an early one
	FailureIncomplete         FailureMode = "incomplete"     // the webhook leaves out a part
	FailureRemoves            FailureMode = "removes"        // the webhook removes what it did not add
	FailureRemovesSample      FailureMode = "removes from sample"
	FailureOverwrites         FailureMode = "overwrites" // the webhook replaces what it did not add
	FailureMisuses            FailureMode = "misuses"    // the webhook uses the user's volume as its own
	FailureImmutable          FailureMode = "immutable"  // an update changes an immutable field
	FailureBlocksDeletion     FailureMode = "blocks deletion"
	FailureNotTheSame         FailureMode = "not the same"   // applying the manifest again changes the object
	FailureSideEffect         FailureMode = "side effect"    // a dry run changes something elsewhere
	FailureDiffers            FailureMode = "differs"        // an equivalent request has another result
	FailureEnvelope           FailureMode = "envelope"       // the API server cannot use the answer
	FailureEnvelopeAgain      FailureMode = "envelope again" // the API server cannot use the answer to a later call
	FailureRounds             FailureMode = "rounds"         // a large integer loses its last digits
	FailureLoses              FailureMode = "loses"          // an unknown field is lost
	FailureDoesNotApply       FailureMode = "does not apply" // the API server cannot apply the patch
	FailureDoesNotApplyAgain  FailureMode = "does not apply again"
	FailureOrder              FailureMode = "depends on the order"  // the order of two webhooks changes the result
	FailureAddsZero           FailureMode = "adds a zero value"     // an added zero value keeps another webhook from setting the field
	FailureLostByReplace      FailureMode = "lost by replace"       // parts are missing after the manifest replaced the object
	FailurePutsBack           FailureMode = "puts back"             // an update cannot remove what the user once set
	FailureCannotReplace      FailureMode = "cannot be replaced"    // the API server rejects the manifest as a replacement
	FailureRegenerates        FailureMode = "regenerates"           // a replacement by the manifest gets a new random value
	FailureChangesWithName    FailureMode = "changes with the name" // an update changes what followed from the generateName
	FailureCollides           FailureMode = "collides"              // the webhook derives one name from two
	FailureIgnoresChange      FailureMode = "ignores a change"      // the user changes a value, and the webhook drops the new one or keeps what followed from the old one
	FailureOverwritesZero     FailureMode = "overwrites a zero"     // the webhook treats a zero or an empty string as absent
	FailureNeedsUpdate        FailureMode = "needs UPDATE"          // values are lost because the webhook is not called when the manifest replaces the object
	FailureReadsStatus        FailureMode = "depends on the status" // the result depends on the status in the new object, but a manifest has none
)

var failureModes = []FailureMode{
	FailureGrows, FailureChanges, FailureNoOpPatch, FailureNeverSettles, FailureInvalid, FailureInvalidOnWindows, FailureServerError, FailureHangs, FailureDenied, FailureDeniedLater, FailureDecidesDifferently, FailureVaries, FailureReadsNamespace, FailureAccumulates, FailureTreatedUnlike, FailureIncomplete, FailureRemoves, FailureRemovesSample, FailureOverwrites, FailureMisuses, FailureImmutable, FailureBlocksDeletion, FailureNotTheSame, FailureSideEffect, FailureDiffers, FailureEnvelope, FailureEnvelopeAgain, FailureRounds, FailureLoses, FailureDoesNotApply, FailureDoesNotApplyAgain, FailureOrder, FailureAddsZero, FailureLostByReplace, FailurePutsBack, FailureCannotReplace, FailureRegenerates, FailureChangesWithName, FailureCollides, FailureIgnoresChange, FailureReadsStatus, FailureOverwritesZero, FailureNeedsUpdate,
}
