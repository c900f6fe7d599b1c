// SPDX-License-Identifier: Apache-2.0

package idempotence

// fixFor says what usually helps against a finding.
func fixFor(law Law, mode FailureMode) string { return by(fixes, law, mode) }

var fixes = map[string]string{
	"L1":                          "Look for your own parts before you add or change anything: find the container, volume or variable by its name and leave it, or set its fields to fixed values. Never compute a value from one that you have changed.",
	"L1 invalid":                  "Look first: add an element only if none of that name, path or port is there, in all lists that share names (containers and initContainers), and a value only where the rest of the object allows it.",
	"L1 invalid on Windows":       "Leave out a security context, and what else Windows lacks, where spec.os.name is windows, if such Pods may come to your cluster.",
	"L4a invalid on Windows":      "Leave out a security context, and what else Windows lacks, where spec.os.name is windows, if such Pods may come to your cluster.",
	"L5 invalid on Windows":       "Leave out a security context, and what else Windows lacks, where spec.os.name is windows, if such Pods may come to your cluster.",
	"L1 no-op patch":              "Send a patch only if something changes, without patchType and patch otherwise.",
	"L2 hangs":                    "See what it waits for: a dump of its goroutines or threads tells. Give its own calls a deadline that is shorter than timeoutSeconds.",
	"L2 denied":                   "Refuse only what differs from what you would set yourself: your own output comes back to you.",
	"L2":                          "Handle every valid object: no labels, no annotations, no name (generateName), no containers with limits. Recover from panics.",
	"L3 reads metadata.namespace": "Take the namespace from request.namespace.",
	"L3":                          "Take nothing but the request into account: no clock, no random names, no counters, no order of map iteration (sort the keys). Derive names from a constant or from a hash of the request.",
	"L4a":                         "Do not rely on what you left in the object: others may have changed or removed it. Ensure each part on its own.",
	"L4a server error":            "Look whether a part is there, and complete, before you read it. Recover from panics.",
	"L4a denied":                  "Refuse only what differs from what you would set yourself: your own output comes back to you.",
	"L4b":                         "Do not stop early because one of your parts is there: ensure each part for itself, in every container, also in those that came later.",
	"L5":                          "Recognise your own parts by name and content. If something else has the name, the path or the port, deny the object, in every call.",
	"L5 server error":             "Look whether a part is there, and complete, before you read it. Recover from panics.",
	"L5 denied":                   "Deny such an object in the first call already, or in none.",
	"L5 removes":                  "Set single keys and elements instead of whole maps and lists.",
	"L5 overwrites":               "If it is meant, declare it: idempotence.Exceptions with the path and the reason.",
	"L10 overwrites":              "If it is meant, declare it: idempotence.Exceptions with the path and the reason.",
	"L5 removes from sample":      "If it is meant, declare it: idempotence.Exceptions with the path and the reason.",
	"L10 removes from sample":     "If it is meant, declare it: idempotence.Exceptions with the path and the reason.",
	"L6 not the same":             "Do the same on UPDATE as on CREATE, or nothing: add only what is missing.",
	"L6 server error":             "Handle every update of an object that the API server accepts, also of one that is older than the webhook. Recover from panics.",
	"L6":                          "Act on CREATE only, or change in an UPDATE only what may change there; let deletions (metadata.deletionTimestamp) pass.",
	"L7":                          "Give the same answer in a dry run (request.dryRun), and leave out only what reaches beyond the object.",
	"L8":                          "Answer in the version of the request, echo its uid, and send patchType exactly when there is a patch.",
	"L9 rounds":                   "Decode with sigs.k8s.io/json, or with Decoder.UseNumber, and patch only what you change.",
	"L9 server error":             "Decode without DisallowUnknownFields and strict decoders: the API server may be newer than your types.",
	"L9":                          "Compute the patch from the difference that you made, not from the object as your types read it: what they do not know is lost otherwise.",
	"L10 does not apply":          "Compute the patch against the exact bytes of request.object: escape / as ~1 and ~ as ~0 in paths, create parents that are missing, remove elements from the end.",
	"L10":                         "Add single keys and elements: replace a whole map or list and you remove what others have put there.",
	"L10 no-op patch":             "Send no patch when nothing changes.",
	"L11":                         "Set only what is yours, and do not depend on what others have set or will set.",
	"L12":                         "Insist on nothing that others may insist on too, such as being first in a list: insert once, and never move again.",
}
