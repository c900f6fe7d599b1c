// SPDX-License-Identifier: Apache-2.0

package idempotence

// A family is a class of inputs. A test disables each family and requires that a known bug is then missed: otherwise the
// family would not be worth its time.
type family string

const (
	givenSamples     family = "samples"
	generated        family = "generated objects"
	furnishedObject  family = "the furnished object"
	singleSettings   family = "single settings"
	variedSamples    family = "variations of samples"
	partsOfResults   family = "partial results"
	alikeParts       family = "look-alikes of parts"
	meddlingEdits    family = "edits of what is there"
	strangersAdd     family = "additions"
	strangersFirst   family = "additions at the front"
	legalTwins       family = "legal duplicates"
	removedTwins     family = "twins of what is removed"
	newFields        family = "unknown fields"
	otherEncodings   family = "other encodings"
	reviewVersions   family = "review versions"
	objectsBefore    family = "objects before"
	freshInstances   family = "fresh instances"
	laterCalls       family = "later calls"
	noNamespace      family = "no metadata.namespace"
	olderObjects     family = "older objects"
	deletions        family = "deletions"
	manifestsAgain   family = "manifests again"
	updatesOfObjects family = "updates"
	deletionRequests family = "deletion requests"
	builtinRivals    family = "rivals that everybody has"
	declaredRivals   family = "rivals that are declared"
)

var families = []family{
	givenSamples, generated, furnishedObject, singleSettings, variedSamples, partsOfResults, alikeParts, meddlingEdits, strangersAdd, strangersFirst,
	legalTwins, removedTwins, newFields, otherEncodings, reviewVersions, objectsBefore, freshInstances, laterCalls,
	noNamespace, olderObjects, deletions, manifestsAgain, updatesOfObjects, deletionRequests, builtinRivals, declaredRivals,
}

// uses reports whether a family is enabled.
func (o *options) uses(f family) bool { return !o.unused[f] }
