// SPDX-License-Identifier: Apache-2.0

package idempotence

var lawL6 = description{
	name:      "updates",
	statement: "the webhook does not block or change updates of older objects, deletions or repeated applies of a manifest; it keeps a later change by the user; and it adds its parts again when the manifest replaces the object",
	explanation: explanation{
		requests: []string{"the creation", "an update that changes nothing", "the manifest applied again"},
		from:     "as it was stored", to: "with the manifest applied again",
		cause: "The webhook changes the object differently on UPDATE and on CREATE.",
		fix:   "On UPDATE, change nothing or only mutable fields. If the new object lacks an immutable field that you set on CREATE, copy it from the old object. Admit updates of objects that are being deleted (metadata.deletionTimestamp).",
	},
	modes: map[FailureMode]explanation{
		FailureServerError: {
			requests: []string{"the update"},
			cause:    "The webhook relies on fields that only a new object has, or on an old object that the request lacks.",
			fix:      "Handle every update that the API server accepts, including updates of objects that are older than the webhook.",
		},
		FailureDenied: {
			cause: "A check that is meant for new objects rejects fields that the webhook or the API server has set.",
		},
		FailureImmutable: {
			requests: []string{"an update of an annotation"},
			cause:    "The webhook does the same on UPDATE as on CREATE, where every field may still change.",
		},
		FailureBlocksDeletion: {
			requests: []string{"the removal of the last finalizer"},
			cause:    "The webhook treats an object that is being deleted like any other.",
		},
		FailureNotTheSame: {
			fix: "Do the same on UPDATE as on CREATE, or nothing: add only missing parts.",
		},
		FailureLostByReplace: {
			requests: []string{"an update that changes nothing", "an update with the whole manifest"},
			from:     "as it was stored", to: "after the manifest replaced it",
			cause: "The webhook acts on CREATE only, or takes a mark of the old object as proof that the new one has its parts.",
			fix:   "On UPDATE, check the new object and add what it lacks. If you set a field only once on purpose, take its value from the old object.",
		},
		FailurePutsBack: {
			requests: []string{"an update that changes nothing", "an update with the whole manifest"},
			cause:    "The webhook copies values of the old object that the new one lacks, and not only its own.",
			fix:      "Copy only the values that the webhook itself has set.",
		},
		FailureCannotReplace: {
			requests: []string{"a new object", "an update with the whole manifest"},
			from:     "as it was created", to: "after the manifest replaced it",
			cause: "The webhook sets an immutable field on CREATE, but not on UPDATE if the new object lacks it. So the API server rejects kubectl replace, a restored backup, and a controller that sends the whole manifest.",
			fix:   "Register the webhook for UPDATE, too. On UPDATE, copy the field from the old object if the new one lacks it, or has only the default of the API server.",
		},
		FailureNeedsUpdate: {
			requests: []string{"a new object", "an update with the whole manifest"},
			from:     "as it was created", to: "after the manifest replaced it",
			cause: "The webhook is registered for CREATE only, so the API server does not call it for kubectl replace, a restored backup, or a controller that sends the whole manifest.",
			fix:   "If the parts must stay, register the webhook for UPDATE, too, and add what the new object lacks.",
		},
		FailureIgnoresChange: {
			requests: []string{"a new object with the changed manifest", "an update with the changed manifest"},
			from:     "an object created from the changed manifest", to: "the stored object after the changed manifest is applied",
			cause: "The webhook keeps the old value. It has moved a copy of it to another field, it writes the stored value back, or it sets a value only if there is none.",
			fix:   "Leave the user's value in its field. If the webhook must move the value, replace the copy whenever the field has a value. To forbid a change, deny the update.",
		},
		FailureReadsStatus: {
			requests: []string{"an update with a status in the new object", "the same update without a status"},
			from:     "with a status in the new object", to: "without a status in the new object",
			cause: "The webhook reads the status of the new object, but a manifest has no status. The API server copies the old status into the new object only after it has called the mutating webhooks.",
			fix:   "On UPDATE, read the status of the old object.",
		},
		FailureRegenerates: {
			requests: []string{"an update that changes nothing", "an update with the whole manifest"},
			from:     "as it was stored", to: "after the manifest replaced it",
			cause: "The webhook generates a new random value if the object has none, and does not look at the old object.",
			fix:   "On UPDATE, take the value from the old object. Generate a new one only if the old object has none.",
		},
	},
}
