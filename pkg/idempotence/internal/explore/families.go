// SPDX-License-Identifier: Apache-2.0

package explore

// A Family is a class of inputs. For each family, a test disables the family and requires that the harness then misses
// a known bug. A family that finds no bug of its own would only cost time.
type Family string

// The families.
const (
	Samples             Family = "samples"
	Generated           Family = "generated objects"
	FurnishedObject     Family = "the furnished object"
	SingleSettings      Family = "single settings"
	VariedSamples       Family = "variations of samples"
	PartialResults      Family = "partial results"
	SimilarParts        Family = "look-alikes of parts"
	EditsOfResults      Family = "edits of results"
	Additions           Family = "additions"
	FrontAdditions      Family = "additions at the front"
	LegalDuplicates     Family = "legal duplicates"
	DuplicatesOfRemoved Family = "duplicates of what is removed"
	UnknownFields       Family = "unknown fields"
	OtherEncodings      Family = "other encodings"
	ReviewVersions      Family = "review versions"
	ObjectsBefore       Family = "objects before"
	FreshInstances      Family = "fresh instances"
	LaterCalls          Family = "later calls"
	NoNamespace         Family = "no metadata.namespace"
	OlderObjects        Family = "older objects"
	Deletions           Family = "deletions"
	ManifestsAgain      Family = "manifests again"
	Updates             Family = "updates"
	DeletionRequests    Family = "deletion requests"
	CommonRivals        Family = "common rivals"
	DeclaredRivals      Family = "declared rivals"
	Triggers            Family = "triggers"
	SparseObjects       Family = "sparse objects"
	SimilarNames        Family = "similar names"
	CopiedElements      Family = "copied elements"
	EqualTexts          Family = "texts in other forms"
	ExtendedTexts       Family = "texts with further items"
	FilledFields        Family = "fields that the webhook fills"
	Namesakes           Family = "objects of one name"
	ParallelCalls       Family = "calls at the same time"
	OtherUsers          Family = "other users"
	Copies              Family = "copies"
	Replacements        Family = "replaced by the manifest"
	OwnTexts            Family = "texts of the webhook's source"
	LaterChanges        Family = "updates with a changed manifest"
	ZeroValues          Family = "zeros that the user sets"
	Switches            Family = "labels and annotations that no sample has"
)

// Families lists all families.
var Families = []Family{
	Samples, Generated, FurnishedObject, SingleSettings, VariedSamples, PartialResults, SimilarParts, EditsOfResults, Additions, FrontAdditions, LegalDuplicates, DuplicatesOfRemoved, UnknownFields, OtherEncodings, ReviewVersions, ObjectsBefore, FreshInstances, LaterCalls, NoNamespace, OlderObjects, Deletions, ManifestsAgain, Updates, DeletionRequests, CommonRivals, DeclaredRivals,
	Triggers, SparseObjects, SimilarNames, CopiedElements, EqualTexts, ExtendedTexts,
	FilledFields, Namesakes, ParallelCalls, OtherUsers, Copies, Replacements, OwnTexts, LaterChanges, ZeroValues, Switches,
}
