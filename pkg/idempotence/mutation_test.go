// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/test/corpus"
)

// These maps name, for each law and each family of inputs, a broken webhook that the harness misses when that law or
// family is disabled.
var (
	escapesWithoutLaw = map[Law]string{
		L1:  "P01 blind append of a sidecar",
		L2:  "P04 refuses its own output",
		L3:  "P17 map iteration decides list order",
		L4a: "M12 trusts its annotation",
		L4b: "P10 early return when its volume exists",
		L5:  "M14 takes its toleration as proof that all is done",
		L6:  "P18 patches an immutable field on UPDATE",
		L7:  "P19 no patch in a dry run",
		L8:  "P20 uid not copied",
		L9:  "P16 typed round trip drops unknown fields",
		L10: "P13 replaces the whole map",
		L11: "M29 records the registry of the first call",
		L12: "M26 sorts the containers",
	}
	escapesWithoutFamily = map[explore.Family]string{
		explore.Samples:             "P25 removes in ascending order",
		explore.Generated:           "M23 chooses a name in place of the API server",
		explore.FurnishedObject:     "M02 shortens a label to more than its maximum",
		explore.SingleSettings:      "M33 forbids escalation beside CAP_SYS_ADMIN",
		explore.VariedSamples:       "M34 panics on an invalid port",
		explore.PartialResults:      "M14 takes its toleration as proof that all is done",
		explore.SimilarParts:        "M15 recognizes its volume by name only",
		explore.EditsOfResults:      "M12 trusts its annotation",
		explore.Additions:           "P10 early return when its volume exists",
		explore.FrontAdditions:      "M31 assumes that the first container is its own",
		explore.LegalDuplicates:     "M32 keeps one source per ConfigMap",
		explore.DuplicatesOfRemoved: "P25 removes in ascending order",
		explore.UnknownFields:       "P16 typed round trip drops unknown fields",
		explore.OtherEncodings:      "M19 searches the raw JSON for text",
		explore.ReviewVersions:      "P20 answers v1 to v1beta1",
		explore.ObjectsBefore:       "M20 keeps a value of the first object",
		explore.FreshInstances:      "M21 writes a random name chosen at start",
		explore.LaterCalls:          "M22 writes the time in seconds",
		explore.NoNamespace:         "P26 branches on metadata.namespace",
		explore.OlderObjects:        "M30 skips Pods in deletion, but not existing Pods",
		explore.Deletions:           "P18 puts its finalizer back while the object is deleted",
		explore.ManifestsAgain:      "M43 adds arguments on CREATE only (Deployment)",
		explore.Updates:             "M41 adds a container in each update (Deployment)",
		explore.DeletionRequests:    "M42 fails without an object",
		explore.CommonRivals:        "M26 sorts the containers",
		explore.Triggers:            "T21 appends a container to annotated Pods",
		explore.DeclaredRivals:      "M29 records the registry of the first call",
		explore.SparseObjects:       "T16 makes only one of two missing maps",
		explore.SimilarNames:        "T17 shortens names to their beginning",
		explore.CopiedElements:      "T18 stops when its volume exists, for containers that ask",
		explore.EqualTexts:          "T06 compares quantities as text",
		explore.ExtendedTexts:       "T05 takes a longer item for its own",
		explore.Namesakes:           "M45 remembers Pods by their name",
		explore.ParallelCalls:       "M46 keeps the Pod of the last request",
		explore.OtherUsers:          "M47 takes every system user for a service account",
		explore.Replacements:        "M48 adds its container on CREATE only (Deployment)",
		explore.Copies:              "M50 mounts a volume named after the Pod",
		explore.LaterChanges:        "M60 moves the first value of its annotation into a label",
		explore.ZeroValues:          "M59 treats a TTL of 0 as unset",
		explore.Switches:            "M61 adds a flag in each call in debug mode",
		explore.OwnTexts:            "M55 writes an empty value for one of its profiles",
	}
)

// overlaps has, for a family, other families that find the same broken webhook. They are disabled, too.
var overlaps = map[explore.Family][]explore.Family{
	explore.ManifestsAgain: {explore.Replacements},
	explore.ObjectsBefore:  {explore.ParallelCalls},

	explore.DuplicatesOfRemoved: {explore.CopiedElements},
}

// escapesWithoutRival names, for some simulated rivals, a broken webhook that the harness misses without the rival.
var escapesWithoutRival = map[string]string{
	"sets the name":              "M51 mounts a volume named after the Pod or its prefix",
	"takes images from a mirror": "M52 puts the registry of the first call into a variable",
	"wraps commands":             "M53 looks for its wrapper in the first place only",
	"fills absent fields":        "M54 writes all fields of its type (Widget)",
}

func TestRivalsAreNeeded(t *testing.T) {
	for rival, name := range escapesWithoutRival {
		t.Run(rival, func(t *testing.T) {
			t.Parallel()
			evades(t, name, Options{Exceptions: []Exception{{Path: "rival:" + rival, Reason: "a test"}}})
		})
	}
}

// mutationObjects is the number of objects in a run of these tests. It is enough to find each of the broken webhooks.
const mutationObjects = 8

func TestEveryLawIsNeeded(t *testing.T) {
	for _, law := range Laws {
		t.Run(string(law), func(t *testing.T) {
			t.Parallel()
			evades(t, escapesWithoutLaw[law], Options{Without: []Law{law}})
		})
	}
}

func TestEveryFamilyIsNeeded(t *testing.T) {
	for _, f := range explore.Families {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			if f == explore.FilledFields {
				return // TestValidOnceFilled requires that the harness tries its objects
			}
			if f != explore.LaterCalls {
				evades(t, escapesWithoutFamily[f], Options{}, append(overlaps[f], f)...)
				return
			}
			// A busy machine delays calls as this family does. In a bubble, only the intended delays count.
			synctest.Test(t, func(t *testing.T) { evades(t, escapesWithoutFamily[f], Options{}, f) })
		})
	}
}

// evades requires that the harness finds the named broken webhook with default options, but misses it with the options
// o and without the unused families.
func evades(t *testing.T, name string, o Options, unused ...explore.Family) {
	t.Helper()
	c := pattern(t, name)
	if report := runUntilFound(t, c, Options{Objects: mutationObjects}); !finds(report, c) {
		t.Errorf("%s is not found without the options:\n%s", name, text(report))
	}
	o.Objects = mutationObjects
	if report := runCase(t, c, o, unused...); finds(report, c) {
		t.Errorf("%s is still found:\n%s", name, text(report))
	}
}

func pattern(t *testing.T, name string) corpus.Case {
	t.Helper()
	for _, c := range corpus.Patterns() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no pattern %q", name)
	return corpus.Case{}
}

// finds reports whether the report has a finding about one of the laws that c breaks.
func finds(report *Report, c corpus.Case) bool {
	return slices.ContainsFunc(report.Findings, func(v *Violation) bool { return isOf(c, v) })
}

// isOf reports whether a finding is about one of the laws that c breaks.
func isOf(c corpus.Case, v *Violation) bool {
	return (c.Advice || v.Verdict != Advice) && slices.ContainsFunc(c.Laws, func(l string) bool { return l == string(v.Law) || l == strings.TrimRight(string(v.Law), "ab") })
}
