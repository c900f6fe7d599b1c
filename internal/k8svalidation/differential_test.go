// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// limits are patterns for those rejections of the API server that this package deliberately does not reproduce.
var limits = []struct{ why, reason string }{
	{"an admission plugin sets the service account", `serviceAccountToken: Forbidden: must not be specified when serviceAccountName`},
	{"needs a parser of schedules", `^spec\.schedule: Invalid`},
	{"concerns addresses that the API server assigns", `^spec\.(clusterIPs?|ipFamilies|ipFamilyPolicy)\b`},
	{"depends on the settings of the cluster", `spec\.(sessionAffinityConfig|externalTrafficPolicy|internalTrafficPolicy|healthCheckNodePort|loadBalancer(IP|SourceRanges))`},
	{"concerns a selector that the API server generates", "^spec\\.selector: .*(auto-generated|immutable)"},
	{"is allowed on an update if it was there", `nodeSelectorTerms\[[0-9]+\]\.matchExpressions\[[0-9]+\]\.values\[`},
	{"depends on other fields of indexed Jobs", `spec\.(maxFailedIndexes|completions|parallelism|backoffLimitPerIndex): `},
}

// renamed matches the paths of errors that the API server reports at a slightly different path. This does not harm
// users.
var renamed = regexp.MustCompile(`nodePublishSecretRef\.name$|serviceAccountToken\.path$|^spec\.template$|^spec\.selector$|resources\[storage\]$`)

// count has the number of objects that were compared, by result.
type count struct{ asked, accepted, refused, limited int }

// compare checks that this package and the API server agree on an object.
func (n *count) compare(t *testing.T, name string, obj, stored runtime.Object, errs field.ErrorList, refusal error) {
	t.Helper()
	n.asked++
	switch {
	case refusal == nil && len(errs) > 0:
		t.Errorf("%s: the API server accepts the object that Validate rejects: %v", name, errs.ToAggregate())
	case refusal != nil && len(errs) == 0 && !isLimit(refusal):
		t.Errorf("%s: accepted here, refused by the API server:\n\t%s", name, reasons(refusal))
	case refusal != nil && len(errs) == 0:
		n.limited++
	case refusal != nil:
		n.refused++
		if !apierrors.IsInvalid(refusal) || names(refusal, "spec.selector") {
			return // other errors name no field, and after an error in the selector the API server skips the template
		}
		for _, e := range errs {
			if !names(refusal, e.Field) && !renamed.MatchString(e.Field) {
				t.Errorf("%s: %v\nThe API server does not name %s:\n\t%s", name, e, e.Field, reasons(refusal))
			}
		}
	default:
		n.accepted++
		if diff := cmp.Diff(defaulted(t, stored), defaulted(t, obj)); diff != "" {
			t.Errorf("%s: defaults differ (-API server +here):\n%s", name, diff)
		}
	}
}

// isLimit reports whether each reason of the API server's rejection is one of the limits.
func isLimit(refusal error) bool {
	for _, reason := range refusals(refusal) {
		known := false
		for _, limit := range limits {
			known = known || regexp.MustCompile(limit.reason).MatchString(reason)
		}
		if !known {
			return false
		}
	}
	return true
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// names reports whether the API server's error names the field or one of its parents. Indexes may
// differ, because a StatefulSet merges two lists of volumes.
func names(refusal error, path string) bool {
	path = index.ReplaceAllString(path, "")
	for _, reason := range refusals(refusal) {
		named, _, _ := strings.Cut(reason, ": ")
		rest, in := strings.CutPrefix(path, index.ReplaceAllString(named, ""))
		if in && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// cases returns the range of seeds to test. ADMITKIT_BUILTIN_CASES sets the count and
// ADMITKIT_BUILTIN_SEED the first seed.
func cases(t *testing.T, usual int) (first, n uint64) {
	t.Helper()
	first, n = 1, uint64(usual)
	for name, value := range map[string]*uint64{"ADMITKIT_BUILTIN_CASES": &n, "ADMITKIT_BUILTIN_SEED": &first} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		var err error
		if *value, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return first, n
}

func TestRandomObjectsAgreeWithTheAPIServer(t *testing.T) {
	s := startServer(t)
	objects := full(t)
	var n count
	first, many := cases(t, 400)
	for seed := first; seed < first+many; seed++ {
		object, log := generated(seed, objects)
		obj, err := typed(object)
		if err != nil {
			continue // a webhook never receives such an object
		}
		name := "seed " + strconv.FormatUint(seed, 10) + ": " + strings.Join(log, ", ")
		stored, refusal := s.create(t, obj)
		if stored == nil {
			continue
		}
		errs := Validate(obj)
		Default(obj)
		if again := Validate(obj); (len(again) == 0) != (len(errs) == 0) {
			t.Errorf("%s: the errors with and without the defaults differ: %v and %v", name, errs, again)
		}
		n.compare(t, name, obj, stored, errs, refusal)
	}
	t.Logf("%+v", n)
}

func TestRandomUpdatesAgreeWithTheAPIServer(t *testing.T) {
	s := startServer(t)
	var n count
	first, many := cases(t, 300)
	stored := s.storedObjects(t)
	for seed := first; seed < first+many; seed++ {
		r := rand.New(rand.NewPCG(seed, 1))
		old := stored[r.IntN(len(stored))]
		object := defaulted(t, old)
		var log []string
		for range 1 + r.IntN(2) {
			log = append(log, change(r, object))
		}
		obj, err := withIdentity(object, old)
		if err != nil {
			continue
		}
		name := "seed " + strconv.FormatUint(seed, 10) + ": " + object["kind"].(string) + " " + strings.Join(log, ", ")
		updated, refusal := s.update(t, obj)
		Default(obj)
		n.compare(t, name, obj, updated, ValidateUpdate(obj, old), refusal)
	}
	t.Logf("%+v", n)
}

// change makes one random edit that keeps the identity of an object.
func change(r *rand.Rand, object tree) string {
	var list []edit
	edits("", object, nil, &list)
	list = slices.DeleteFunc(list, func(e edit) bool {
		return strings.HasPrefix(e.path, ".metadata.name") || strings.HasPrefix(e.path, ".metadata.generateName")
	})
	if len(list) == 0 {
		return "nothing"
	}
	e := list[r.IntN(len(list))]
	return e.path + " " + e.do(r)
}
