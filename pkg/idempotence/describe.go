// SPDX-License-Identifier: Apache-2.0

package idempotence

// An explanation is what a report says about a finding.
type explanation struct {
	requests []string // what each request is about
	from, to string   // the two objects of the difference
	cause    string
	fix      string
}

// A description is what a report says about a law. The explanation of a failure mode overrides that of the
// law, field by field.
type description struct {
	statement string
	explanation
	modes map[FailureMode]explanation
}

// explain returns what a report says about a law that is broken in a failure mode.
func explain(law Law, mode FailureMode) explanation {
	d := descriptions[law]
	of := d.modes[mode]
	e := d.explanation
	if of.requests != nil {
		e.requests = of.requests
	}
	if of.cause != "" {
		e.cause = of.cause
	}
	if of.fix != "" {
		e.fix = of.fix
	}
	switch other, ok := objectsCompared[mode]; {
	case of.from != "":
		e.from, e.to = of.from, of.to
	case e.from != "":
	case ok:
		e.from, e.to = other[0], other[1]
	default:
		e.from, e.to = "one call", "the next call"
	}
	return e
}

// Statement returns what the law demands, in a sentence.
func (l Law) Statement() string { return descriptions[l].statement }

// objectsCompared names the two objects of a difference, by failure mode, for laws that do not name them.
var objectsCompared = map[FailureMode][2]string{
	FailureRemoves:       {"the object as it was sent", "what the webhook made of it"},
	FailureOverwrites:    {"the object as it was sent", "what the webhook made of it"},
	FailureRemovesSample: {"the object as it was sent", "what the webhook made of it"},
}

// descriptions has one value for each law.
var descriptions = map[Law]description{
	L1:  lawL1,
	L2:  lawL2,
	L3:  lawL3,
	L4a: lawL4a,
	L4b: lawL4b,
	L5:  lawL5,
	L6:  lawL6,
	L7:  lawL7,
	L8:  lawL8,
	L9:  lawL9,
	L10: lawL10,
	L11: lawL11,
	L12: lawL12,
}

var lawL1 = description{
	statement: "the second call changes nothing, and the result is valid",
	explanation: explanation{
		requests: []string{"the object", "what came of it"},
		fix:      "Look for your own parts before you add or change anything: find the container, volume or variable by its name and leave it, or set its fields to fixed values. Never compute a value from one that you have changed.",
	},
	modes: map[FailureMode]explanation{
		FailureGrows: {
			cause: "It adds a part without looking whether the part is there.",
		},
		FailureChanges: {
			cause: "It computes a value from one that it has changed itself: it appends, prefixes, adds up, counts or hashes its own parts.",
		},
		FailureNoOpPatch: {
			cause: "It sends its patch without looking whether anything differs.",
			fix:   "Send a patch only if something changes, without patchType and patch otherwise.",
		},
		FailureInvalid: {
			cause: "It writes what does not go with the rest of the object: an element of a name, path or port that is taken, or a value that another field rules out.",
			fix:   "Look first: add an element only if none of that name, path or port is there, in all lists that share names (containers and initContainers), and a value only where the rest of the object allows it.",
		},
		FailureInvalidOnWindows: {
			cause: "It sets what is for Linux only.",
			fix:   "Leave out a security context, and what else Windows lacks, where spec.os.name is windows, if such Pods may come to your cluster.",
		},
	},
}

var lawL2 = description{
	statement: "what is allowed once is allowed again, and no valid object makes the webhook fail",
	explanation: explanation{
		requests: []string{"the object", "what came of it"},
		fix:      "Handle every valid object: no labels, no annotations, no name (generateName), no containers with limits. Recover from panics.",
	},
	modes: map[FailureMode]explanation{
		FailureServerError: {
			cause: "It takes for granted what a valid object may lack: labels, annotations, a name, a security context.",
		},
		FailureHangs: {
			cause: "It waits for something: a lock, another server, or the API server, which waits for the webhook.",
			fix:   "See what it waits for: a dump of its goroutines or threads tells. Give its own calls a deadline that is shorter than timeoutSeconds.",
		},
		FailureDenied: {
			cause: "A check that is meant for the user's objects meets what the webhook put there itself.",
			fix:   "Refuse only what differs from what you would set yourself: your own output comes back to you.",
		},
	},
}

var lawL3 = description{
	statement: "the same request makes the same object",
	explanation: explanation{
		requests: []string{"the object", "the same object again"},
		from:     "the first answer", to: "the second answer",
		cause: "The answer depends on more than the request: a clock, random numbers, a counter, memory of other objects, or the order in which a map is iterated.",
		fix:   "Take nothing but the request into account: no clock, no random names, no counters, no order of map iteration (sort the keys). Derive names from a constant or from a hash of the request.",
	},
	modes: map[FailureMode]explanation{
		FailureDecidesDifferently: {
			cause: "The decision depends on more than the request: what the instance has seen, or another system.",
		},
		FailureReadsNamespace: {
			requests: []string{"the object", "the same without metadata.namespace"},
			from:     "with metadata.namespace", to: "without it",
			cause: "It reads the namespace from the object.",
			fix:   "Take the namespace from request.namespace.",
		},
	},
}

var lawL4a = description{
	statement: "what others edit between two calls leaves a valid object that the next call does not change",
	explanation: explanation{
		requests: []string{"the object", "what came of it, edited by another party", "what came of that"},
		cause:    "It remembers that it is done (an annotation, a marker, the first of its parts) and does not look at the parts themselves.",
		fix:      "Do not rely on what you left in the object: others may have changed or removed it. Ensure each part on its own.",
	},
	modes: map[FailureMode]explanation{
		FailureGrows: {
			cause: "It adds a part without looking whether the part is there.",
		},
		FailureChanges: {
			cause: "It takes its own earlier output, edited since, for the user's input.",
		},
		FailureInvalid: {
			cause: "It adds a part although somebody has put one of that name, path or port there since.",
		},
		FailureInvalidOnWindows: {
			cause: "It sets what is for Linux only.",
			fix:   "Leave out a security context, and what else Windows lacks, where spec.os.name is windows, if such Pods may come to your cluster.",
		},
		FailureServerError: {
			cause: "It takes for granted that its parts are as it left them: an entry, a field, an index that somebody has removed.",
			fix:   "Look whether a part is there, and complete, before you read it. Recover from panics.",
		},
		FailureDenied: {
			cause: "A check that is meant for the user's objects meets what the webhook put there itself.",
			fix:   "Refuse only what differs from what you would set yourself: your own output comes back to you.",
		},
		FailureDeniedLater: {
			cause: "It checks what it noted in an earlier call, which others may have made untrue.",
		},
		FailureAccumulates: {
			cause: "It does not recognise its own part once another party has edited it, and adds it again.",
		},
	},
}

var lawL4b = description{
	statement: "what others add between two calls is treated as if it had been there before",
	explanation: explanation{
		requests: []string{"the object", "what came of it, with the addition", "the object with the addition from the start", "what came of that"},
		from:     "added between two calls", to: "added before the first call",
		cause: "It stops when it finds one of its parts, and what was added later is left out.",
		fix:   "Do not stop early because one of your parts is there: ensure each part for itself, in every container, also in those that came later.",
	},
	modes: map[FailureMode]explanation{
		FailureDecidesDifferently: {
			cause: "A check sees what was there at the first call, and not what came later, or the other way round.",
		},
	},
}

var lawL5 = description{
	statement: "parts that are there already, or look like it, are completed and lose nothing",
	explanation: explanation{
		requests: []string{"the object with the part", "what came of it"},
		cause:    "It does not recognise a part that it did not make itself, or made in another call.",
		fix:      "Recognise your own parts by name and content. If something else has the name, the path or the port, deny the object, in every call.",
	},
	modes: map[FailureMode]explanation{
		FailureInvalid: {
			cause: "It compares names only, or paths only, and adds what collides with what is there.",
		},
		FailureInvalidOnWindows: {
			cause: "It sets what is for Linux only.",
			fix:   "Leave out a security context, and what else Windows lacks, where spec.os.name is windows, if such Pods may come to your cluster.",
		},
		FailureServerError: {
			cause: "It takes for granted that a part that is there is one of its own, and complete.",
			fix:   "Look whether a part is there, and complete, before you read it. Recover from panics.",
		},
		FailureDenied: {
			cause: "A check that is meant for the user's objects meets what the webhook put there itself.",
			fix:   "Deny such an object in the first call already, or in none.",
		},
		FailureIncomplete: {
			requests: []string{"the object", "the object with the part"},
			from:     "the object without the part", to: "the object with the part",
			cause: "It takes one part for the sign that all are there.",
		},
		FailureRemoves: {
			from: "the object as it was sent", to: "what the webhook made of it",
			cause: "It replaces a whole list or map, or merges elements that only look alike.",
			fix:   "Set single keys and elements instead of whole maps and lists.",
		},
		FailureRemovesSample: {
			cause: "It takes out elements of the object, perhaps on purpose.",
			fix:   "If it is meant, declare it: idempotence.Exceptions with the path and the reason.",
		},
		FailureOverwrites: {
			from: "the object as it was sent", to: "what the webhook made of it",
			cause: "It enforces an element or a command line of its own, whoever has set it.",
			fix:   "If it is meant, declare it: idempotence.Exceptions with the path and the reason.",
		},
		FailureMisuses: {
			cause: "It recognises its volume by the name alone.",
		},
	},
}

var lawL6 = description{
	statement: "an update of an older object, a deletion, and the same manifest again go through unchanged",
	explanation: explanation{
		requests: []string{"the object", "the manifest applied again"},
		from:     "as it was stored", to: "with the manifest applied again",
		cause: "What it does on UPDATE differs from what it did on CREATE.",
		fix:   "Act on CREATE only, or change in an UPDATE only what may change there; let deletions (metadata.deletionTimestamp) pass.",
	},
	modes: map[FailureMode]explanation{
		FailureServerError: {
			requests: []string{"the update"},
			cause:    "It takes for granted what only a new object has, or an old object that is not there.",
			fix:      "Handle every update of an object that the API server accepts, also of one that is older than the webhook. Recover from panics.",
		},
		FailureDenied: {
			cause: "A check that is meant for new objects meets what the webhook, or the API server, has put there.",
		},
		FailureImmutable: {
			requests: []string{"an update of an annotation"},
			cause:    "It does the same on UPDATE as on CREATE, where everything may still change.",
		},
		FailureBlocksDeletion: {
			requests: []string{"the removal of the last finalizer"},
			cause:    "It treats an object that is being deleted like any other.",
		},
		FailureNotTheSame: {
			fix: "Do the same on UPDATE as on CREATE, or nothing: add only what is missing.",
		},
	},
}

var lawL7 = description{
	statement: "a dry run gives the same answer and has no effect",
	explanation: explanation{
		requests: []string{"the object", "the same in, or after, a dry run"},
		from:     "without a dry run", to: "in, or after, a dry run",
		cause: "A dry run takes another way through the code, or leaves something behind.",
		fix:   "Give the same answer in a dry run (request.dryRun), and leave out only what reaches beyond the object.",
	},
	modes: map[FailureMode]explanation{
		FailureSideEffect: {
			requests: []string{"the object, in a dry run"},
			cause:    "It writes to another system before it looks at request.dryRun.",
		},
	},
}

var lawL8 = description{
	statement: "every review version and encoding gets the same decision in a correct envelope",
	explanation: explanation{
		requests: []string{"the object", "the same in the other way"},
		from:     "the usual review", to: "the other review",
		cause: "It answers in a fixed version, or leaves out uid or patchType.",
		fix:   "Answer in the version of the request, echo its uid, and send patchType exactly when there is a patch.",
	},
	modes: map[FailureMode]explanation{
		FailureDecidesDifferently: {
			cause: "It decides by the text of the request and not by what it means.",
		},
		FailureDiffers: {
			cause: "It reads the text of the request and not what it means, or only one version of the review.",
		},
		FailureEnvelope: {
			requests: []string{"the object"},
		},
		FailureEnvelopeAgain: {
			requests: []string{"the object", "what came of it"},
		},
	},
}

var lawL9 = description{
	statement: "fields that the webhook does not know survive where they are",
	explanation: explanation{
		requests: []string{"the object with fields of a newer API"},
		cause:    "It decodes the object into its Go types, encodes them again, and sends the difference to what it got.",
		fix:      "Compute the patch from the difference that you made, not from the object as your types read it: what they do not know is lost otherwise.",
	},
	modes: map[FailureMode]explanation{
		FailureServerError: {
			cause: "Its decoder is strict: it refuses fields that its types do not have.",
			fix:   "Decode without DisallowUnknownFields and strict decoders: the API server may be newer than your types.",
		},
		FailureRounds: {
			cause: "It reads numbers as floats, as encoding/json does where it has no type.",
			fix:   "Decode with sigs.k8s.io/json, or with Decoder.UseNumber, and patch only what you change.",
		},
	},
}

var lawL10 = description{
	statement: "the patch applies to what was sent, and touches only what has to change",
	explanation: explanation{
		requests: []string{"the object", "what came of it"},
		fix:      "Add single keys and elements: replace a whole map or list and you remove what others have put there.",
	},
	modes: map[FailureMode]explanation{
		FailureNoOpPatch: {
			cause: "It sends its patch without looking whether anything differs.",
			fix:   "Send no patch when nothing changes.",
		},
		FailureRemoves: {
			cause: "It replaces a whole list or map with its own, or merges elements that only look alike.",
		},
		FailureRemovesSample: {
			cause: "It takes out elements of the object, perhaps on purpose.",
			fix:   "If it is meant, declare it: idempotence.Exceptions with the path and the reason.",
		},
		FailureOverwrites: {
			cause: "It enforces an element or a command line of its own, whoever has set it.",
			fix:   "If it is meant, declare it: idempotence.Exceptions with the path and the reason.",
		},
		FailureDoesNotApply: {
			cause: "The patch is not made for the object that was sent: an unescaped / in a path, a parent that is missing, an index that has shifted.",
			fix:   "Compute the patch against the exact bytes of request.object: escape / as ~1 and ~ as ~0 in paths, create parents that are missing, remove elements from the end.",
		},
		FailureDoesNotApplyAgain: {
			cause: "The patch is made for objects that the webhook has not seen yet.",
		},
	},
}

var lawL11 = description{
	statement: "with another webhook, the result does not depend on who is called first",
	explanation: explanation{
		requests: []string{"this webhook first", "then the other", "the other webhook first", "then this one"},
		from:     "this webhook first", to: "the other webhook first",
		cause: "What it does depends on what the other webhook has done, or not done yet.",
		fix:   "Set only what is yours, and do not depend on what others have set or will set.",
	},
}

var lawL12 = description{
	statement: "with another webhook, a state is reached that neither changes",
	explanation: explanation{
		requests: []string{"this webhook", "then the other", "this webhook again", "then the other again"},
		from:     "one turn", to: "the next turn",
		cause: "Both insist on something that only one of them can have.",
		fix:   "Insist on nothing that others may insist on too, such as being first in a list: insert once, and never move again.",
	},
}
