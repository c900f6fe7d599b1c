// SPDX-License-Identifier: Apache-2.0

package idempotence

var lawL1 = description{
	name:      "second call",
	statement: "the second call changes nothing, and the result is valid",
	explanation: explanation{
		requests: []string{"the object", "the result of the first call"},
		fix:      "Look for your own parts before you add or change anything: find the container, volume or variable by its name and leave it, or set its fields to fixed values. Never compute a new value from one that the webhook has already changed.",
	},
	modes: map[FailureMode]explanation{
		FailureGrows: {
			cause: "The webhook adds a part without checking whether the object has it.",
		},
		FailureChanges: {
			cause: "The webhook computes a value from one that it has changed itself: it appends to, prefixes, counts or hashes its own parts.",
		},
		FailureNoOpPatch: {
			cause: "The webhook sends its patch without checking whether anything differs.",
			fix:   "Send a patch only if something changes. Otherwise leave out patchType and patch. If it adds only creationTimestamp: null, upgrade to controller-runtime 0.22 or later.",
		},
		FailureInvalid: {
			cause: "The webhook writes a value that conflicts with the rest of the object: an element whose name, path or port is taken, or a value that another field forbids.",
			fix:   "Check first: add an element only if no list that shares its names (containers and initContainers) has its name, path or port, and a value only if the other fields allow it.",
		},
		FailureInvalidOnWindows: {
			cause: "The webhook sets a field that only Linux supports.",
			fix:   "If your cluster may run Windows Pods, do not set security contexts and other fields for Linux when spec.os.name is windows.",
		},
	},
}

var lawL2 = description{
	name:      "own output",
	statement: "an object that is allowed once is allowed again, and no valid object makes the webhook fail",
	explanation: explanation{
		requests: []string{"the object", "the result of the first call"},
		fix:      "Handle every valid object, also one without labels, annotations, a name (generateName) or container limits.",
	},
	modes: map[FailureMode]explanation{
		FailureServerError: {
			cause: "The webhook relies on fields that a valid object may lack: labels, annotations, a name, a security context.",
		},
		FailureHangs: {
			cause: "The webhook waits for a lock, for another server, or for the API server, which itself waits for the webhook.",
			fix:   "A dump of its goroutines or threads shows what it waits for. Give its own calls a deadline that is shorter than timeoutSeconds.",
		},
		FailureDenied: {
			cause: "A check that is meant for the user's fields rejects fields that the webhook has set itself.",
			fix:   "Deny only values that differ from those that you would set: the API server sends your own result back to you.",
		},
	},
}

var lawL3 = description{
	name:      "same request",
	statement: "the same request makes the same object",
	explanation: explanation{
		requests: []string{"the object", "the same object again"},
		from:     "the first answer", to: "the second answer",
		cause: "The response depends on more than the request: a clock, random numbers, a counter, memory of other objects, or the iteration order of a map.",
		fix:   "Decide by the request alone: no clock, no random names, no counters, no iteration order of maps (sort the keys). Derive names from a constant or from a hash of the request.",
	},
	modes: map[FailureMode]explanation{
		FailureDecidesDifferently: {
			cause: "The decision depends on more than the request: what the instance has seen, or another system.",
		},
		FailureReadsNamespace: {
			requests: []string{"the object", "the same without metadata.namespace"},
			from:     "with metadata.namespace", to: "without it",
			cause: "The webhook reads the namespace from the object.",
			fix:   "Take the namespace from request.namespace.",
		},
	},
}

var lawL4a = description{
	name:      "edited parts",
	statement: "after an edit by another party, the next call gives a valid object that further calls do not change",
	explanation: explanation{
		requests: []string{"the object", "the result, edited by another party", "the result of that call"},
		cause:    "The webhook trusts a mark of its first call (an annotation, a label, the first of its parts) and does not check the parts themselves.",
		fix:      "Do not rely on what you added: others may have changed or removed it. Check and complete each part on its own.",
	},
	modes: map[FailureMode]explanation{
		FailureGrows: {
			cause: "The webhook adds a part without checking whether the object has it.",
		},
		FailureChanges: {
			cause: "The webhook takes its own earlier result, which another party has edited, for the user's input.",
		},
		FailureInvalid: {
			cause: "The webhook adds a part although another party has added one with the same name, path or port since the first call.",
		},
		FailureInvalidOnWindows: {
			cause: "The webhook sets a field that only Linux supports.",
			fix:   "If your cluster may run Windows Pods, do not set security contexts and other fields for Linux when spec.os.name is windows.",
		},
		FailureServerError: {
			cause: "The webhook assumes that its parts are as it added them, and reads an entry, a field or an index that another party has removed.",
			fix:   "Check that a part exists and is complete before you read it.",
		},
		FailureDenied: {
			cause: "A check that is meant for the user's fields rejects fields that the webhook has set itself.",
			fix:   "Deny only values that differ from those that you would set: the API server sends your own result back to you.",
		},
		FailureDeniedLater: {
			cause: "The webhook checks what it recorded in an earlier call, although others may have changed the object since.",
		},
		FailureAccumulates: {
			cause: "The webhook does not recognise its own part after another party has edited it, and adds it again.",
		},
	},
}

var lawL4b = description{
	name:      "late additions",
	statement: "an addition between two calls is treated like an addition before the first call",
	explanation: explanation{
		requests: []string{"the object", "the result, with the addition", "the object with the addition from the start", "the result of that call"},
		from:     "added between two calls", to: "added before the first call",
		cause: "The webhook stops when it finds one of its parts, and so ignores what was added later.",
		fix:   "Do not stop because one of your parts exists: check and complete each part on its own, in every container, also in those that were added later.",
	},
	modes: map[FailureMode]explanation{
		FailureAccumulates: {
			cause: "The webhook does not find its item in a text that another party has extended, for example because it compares the whole text, its end, or its beginning.",
			fix:   "Divide the text into its items, remove the blanks around them, and add your item only if none of them equals it.",
		},
		FailureRemoves: {
			from: "the object as it was sent", to: "the result of the webhook",
			cause: "The webhook writes a text again from what it found in its first call, and so removes what another party has added since.",
			fix:   "Read the current text, and add your item to it.",
		},
		FailureDecidesDifferently: {
			cause: "A check sees only what was there at the first call, or only what was added later.",
		},
		FailureAddsZero: {
			cause: "If the source of a value is missing, the webhook writes an empty value. In later calls it keeps that value, although the source is there.",
			fix:   "Write nothing if there is no value.",
		},
		FailureServerError: {
			cause: "The webhook can handle the addition only before its first call, or only after it.",
			fix:   "Check that a part exists and is complete before you read it.",
		},
	},
}

var lawL5 = description{
	name:      "existing parts",
	statement: "existing parts, and similar ones, are completed and lose nothing",
	explanation: explanation{
		requests: []string{"the object with the part", "the result of the first call"},
		cause:    "The webhook does not recognise a part that the user or an earlier call has added.",
		fix:      "Recognise your own parts by name and content. If another part has the name, the path or the port, deny the object in every call.",
	},
	modes: map[FailureMode]explanation{
		FailureAccumulates: {
			cause: "The webhook does not recognise its item in a text with another form, for example with a blank after a comma.",
			fix:   "Divide the text into its items, remove the blanks around them, and add your item only if none of them equals it. Decode JSON and YAML instead of searching the text.",
		},
		FailureInvalid: {
			cause: "The webhook compares only names, or only paths, and adds a part that conflicts with an existing one.",
		},
		FailureInvalidOnWindows: {
			cause: "The webhook sets a field that only Linux supports.",
			fix:   "If your cluster may run Windows Pods, do not set security contexts and other fields for Linux when spec.os.name is windows.",
		},
		FailureServerError: {
			cause: "The webhook assumes that an existing part is its own and complete.",
			fix:   "Check that a part exists and is complete before you read it.",
		},
		FailureDenied: {
			cause: "A check that is meant for the user's fields rejects fields that the webhook has set itself.",
			fix:   "Deny such an object in the first call, or in no call.",
		},
		FailureIncomplete: {
			requests: []string{"the object", "the object with the part"},
			from:     "the object without the part", to: "the object with the part",
			cause: "The webhook takes one existing part as a sign that all exist.",
		},
		FailureCollides: {
			requests: []string{"two clearly different names", "two similar names"},
			cause:    "The webhook shortens names, or replaces characters in them, so that two names become one.",
			fix:      "Append a hash of the whole name to a name that you shorten or change.",
		},
		FailureRemoves: {
			from: "the object as it was sent", to: "the result of the webhook",
			cause: "The webhook replaces a whole list or map, or merges elements that are only similar.",
			fix:   "Set single keys and elements instead of whole maps and lists. But if users must not add their own there, keep that and declare an exception.",
		},
		FailureRemovesSample: {
			cause: "The webhook removes elements of the object, perhaps on purpose.",
			fix:   "If that is intended, declare it in Options.Exceptions with the path and the reason.",
		},
		FailureOverwrites: {
			from: "the object as it was sent", to: "the result of the webhook",
			cause: "The webhook enforces its own element or command line, even if the user has set it.",
			fix:   "If that is intended, declare it in Options.Exceptions with the path and the reason.",
		},
		FailureOverwritesZero: {
			cause: "The webhook compares the field with the zero value of its type, as Go code does if the field is not a pointer. So it cannot distinguish a zero that the user has set from an absent field.",
			fix:   "Test whether the field is present: make it a pointer in the Go type, or look for its key in the JSON object.",
		},
		FailureMisuses: {
			cause: "The webhook recognises its volume by the name alone.",
		},
	},
}

var lawL7 = description{
	name:      "dry runs",
	statement: "a dry run gives the same answer and has no effect",
	explanation: explanation{
		requests: []string{"the object", "the same in, or after, a dry run"},
		from:     "without a dry run", to: "in, or after, a dry run",
		cause: "A dry run takes another path through the code, or changes the state of the webhook.",
		fix:   "Give the same response in a dry run (request.dryRun), and skip only side effects.",
	},
	modes: map[FailureMode]explanation{
		FailureSideEffect: {
			requests: []string{"the object, in a dry run"},
			cause:    "The webhook writes to another system before it checks request.dryRun.",
		},
	},
}

var lawL8 = description{
	name:      "reviews and encodings",
	statement: "every review version and encoding gets the same decision in a correct envelope",
	explanation: explanation{
		requests: []string{"the object", "an equivalent request"},
		from:     "the usual review", to: "the other review",
		cause: "The webhook responds in a fixed version, or without uid or patchType.",
		fix:   "Respond in the version of the request, echo its uid, and send patchType exactly when there is a patch.",
	},
	modes: map[FailureMode]explanation{
		FailureDecidesDifferently: {
			cause: "The webhook decides by the text of the request, not by its content.",
		},
		FailureDiffers: {
			cause: "The webhook reads the text of the request instead of its content, or only one version of the review.",
		},
		FailureEnvelope: {
			requests: []string{"the object"},
		},
		FailureEnvelopeAgain: {
			requests: []string{"the object", "the result of the first call"},
		},
	},
}

var lawL9 = description{
	name:      "unknown fields",
	statement: "fields that the webhook does not know stay in their place",
	explanation: explanation{
		requests: []string{"the object with fields of a newer API"},
		cause:    "The webhook decodes the object into its own types, encodes these, and sends the difference to the request.",
		fix:      "Compute the patch from your own changes. If you compute it from the encoded types, fields that they lack are lost.",
	},
	modes: map[FailureMode]explanation{
		FailureServerError: {
			cause: "The decoder of the webhook is strict: it rejects fields that its types lack.",
			fix:   "Decode without DisallowUnknownFields and strict decoders: the API server may be newer than your types.",
		},
		FailureRounds: {
			cause: "The webhook reads numbers as floats, as encoding/json does for untyped values.",
			fix:   "Decode with sigs.k8s.io/json, or with Decoder.UseNumber, and patch only what you change.",
		},
	},
}

var lawL10 = description{
	name:      "minimal patches",
	statement: "the patch applies to the object that was sent, and touches only what has to change",
	explanation: explanation{
		requests: []string{"the object", "the result of the first call"},
		fix:      "Add single keys and elements. Replacing a whole map or list removes what others have added.",
	},
	modes: map[FailureMode]explanation{
		FailureNoOpPatch: {
			cause: "The webhook sends its patch without checking whether anything differs.",
			fix:   "Send no patch when nothing changes.",
		},
		FailureRemoves: {
			cause: "The webhook replaces a whole list or map with its own, or merges elements that are only similar.",
		},
		FailureRemovesSample: {
			cause: "The webhook removes elements of the object, perhaps on purpose.",
			fix:   "If that is intended, declare it in Options.Exceptions with the path and the reason.",
		},
		FailureOverwrites: {
			cause: "The webhook enforces its own element or command line, even if the user has set it.",
			fix:   "If that is intended, declare it in Options.Exceptions with the path and the reason.",
		},
		FailureDoesNotApply: {
			cause: "The patch does not fit the object that was sent: a path with an unescaped /, a missing parent, a shifted index.",
			fix:   "Compute the patch against the exact bytes of request.object: escape / as ~1 and ~ as ~0 in paths, create missing parents, and remove elements from the end.",
		},
		FailureDoesNotApplyAgain: {
			cause: "The patch assumes an object that the webhook has not changed yet.",
		},
	},
}

var lawL11 = description{
	name:      "webhook order",
	statement: "with another webhook, the result does not depend on who is called first",
	explanation: explanation{
		requests: []string{"this webhook first", "then the other", "the other webhook first", "then this one"},
		from:     "this webhook first", to: "the other webhook first",
		cause: "The result depends on whether the other webhook was called before.",
		fix:   "Set only your own fields, and do not depend on the fields of others. Compute again what you derive from them in each call.",
	},
	modes: map[FailureMode]explanation{
		FailureAddsZero: {
			cause: "The webhook encodes all fields of its Go type, or initialises fields that it does not need.",
			fix:   "Patch only what you change. Give optional fields of your types omitempty and a pointer.",
		},
	},
}

var lawL12 = description{
	name:      "final state",
	statement: "with another webhook, the object reaches a state that neither changes",
	explanation: explanation{
		requests: []string{"this webhook", "then the other", "this webhook again", "then the other again"},
		from:     "one turn", to: "the next turn",
		cause: "Both webhooks enforce something that only one of them can have.",
		fix:   "Do not enforce what others may enforce too, such as the first place in a list: insert once, and never move the element again.",
	},
	modes: map[FailureMode]explanation{
		FailureServerError: {
			cause: "The webhook assumes that the object is as it left it, and reads what another webhook has removed or changed.",
			fix:   "Check that a part exists and is complete before you read it.",
		},
		FailureInvalid: {
			cause: "The webhook adds a part that does not fit what another webhook has changed since the first call.",
			fix:   "Look at the whole object in each call: recognise your own parts, and add only what is missing and fits.",
		},
		FailureAccumulates: {
			cause: "The webhook looks for its own part only in one place, such as the first element.",
			fix:   "Look for your part in the whole list.",
		},
	},
}
