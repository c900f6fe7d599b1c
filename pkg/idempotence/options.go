// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Options configure a run. The zero value of each field selects its default; a negative number
// means no limit.
type Options struct {
	// APIServer connects to a real API server. Between two calls, objects go through it as dry-run
	// requests: its own defaults, admission plugins and validation apply instead of a model of them.
	// Each new object costs one request of some milliseconds, so consider a lower number of
	// Objects. The harness still calls the webhook itself, so the API server need not reach it. The
	// definitions in CRDs are installed during the run. [chain.Connect] documents what the connection
	// needs and what it leaves behind.
	APIServer *rest.Config
	// AllowInconclusive lists the laws that may stay inconclusive, with a reason. Without it, [Check]
	// fails if the webhook changes too few objects or if too few cases of a law can be decided. A
	// sample that the webhook changes is better: a test with this option may prove little. A run that
	// ends early is incomplete regardless.
	AllowInconclusive []Allowance
	// Budget limits the duration of a run, or of one input of [Fuzz]. Zero means [DefaultBudget].
	Budget time.Duration
	// CRDs define the custom resources that the webhook handles. Objects are generated from their
	// schemas, and the API server's own code prunes, defaults and validates them. Without a
	// definition, a custom resource needs one of the Samples, and the harness assumes that the API
	// server accepts every edit of it.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Exceptions declare changes that the webhook makes on purpose.
	Exceptions []Exception
	// Namespaces are the namespaces of the cluster, with the labels that a namespaceSelector reads.
	// An object without a namespace is placed in the first one that the selectors match. The
	// harness assumes that the selectors match any namespace that is not listed.
	Namespaces []*corev1.Namespace
	// Objects is the number of objects to generate. Zero means [DefaultObjects]. With a negative
	// number, the run continues until its Budget or its context ends. Several kinds share the
	// number, but each gets at least six objects, or the full number if it is below six.
	Objects int
	// Observe returns the state that the webhook writes outside of the object. A dry run must not
	// change this state. Values are compared as JSON.
	Observe func() any
	// Progress is called before each check, in the goroutine of the run.
	Progress func(Step)
	// Replay names a file with a stored case. Only this case is checked.
	Replay string
	// Rivals are other webhooks of the cluster. The subject is tested against each of them.
	Rivals []Subject
	// Samples are objects that the webhook changes: they have the labels and annotations that switch
	// it on. A run starts from them and generates variants. A sample needs apiVersion and kind,
	// unless its Go type is a built-in one.
	Samples []runtime.Object
	// Seed selects the generated objects and edits: the same seed gives the same run. Zero means
	// [DefaultSeed].
	Seed int64
	// Store is a folder for failing cases, one file each, under the name of the webhook. The next run
	// checks them first. A case that passes again is reported as mended, and is checked in each run
	// until its file is removed. Empty means [DefaultStore] in [Check], and [NoStore] in [Run].
	Store string
	// TimeGaps makes [Check] repeat requests after these durations, such as [DefaultTimeGaps], to find
	// webhooks that write a date. The harness waits on the fake clock of testing/synctest, so the
	// gaps take no real time. The webhook must run in this process, and the test must be a
	// *testing.T outside of a bubble.
	// newHandler must not start goroutines that never end, nor share channels, timers or
	// connections between instances. TimeGaps cannot be combined with APIServer.
	TimeGaps []time.Duration
	// Without lists laws that are not checked.
	Without []Law
}

// A Step describes the progress of a run. Options.Progress gets one before each check.
type Step struct {
	// Kind is the kind of the objects, and Law the law that is checked.
	Kind string
	Law  Law
	// Object is the number of the object, counted from 1, out of Objects. It is 0 for a stored case.
	Object, Objects int
	// Checks and Calls count what was done for this kind.
	Checks, Calls int
}

// An Allowance permits laws to stay inconclusive.
type Allowance struct {
	// Laws may be inconclusive. Empty means all laws.
	Laws []Law
	// Reason is repeated in the report. It must not be empty.
	Reason string
}

// The defaults of a run.
const (
	// DefaultSeed gives every run of a test the same objects.
	DefaultSeed = 1
	// DefaultObjects is the number of objects that a run generates.
	DefaultObjects = 40
	// DefaultBudget ends the run of a slow webhook. The report is incomplete then.
	DefaultBudget = 5 * time.Minute
	// DefaultStore is the folder in which [Check] stores failing cases.
	DefaultStore = "testdata/idempotence"
	// NoStore as the value of Options.Store means that failing cases are not stored.
	NoStore = "-"
)

// DefaultTimeGaps returns gaps after which a date or a year in an object has changed.
func DefaultTimeGaps() []time.Duration {
	return []time.Duration{25 * time.Hour, 366 * 24 * time.Hour}
}

// options are the validated Options of a run, and the state derived from them.
type options struct {
	samples    []any // decoded objects
	exceptions []Exception
	namespaces []*corev1.Namespace
	known      *session.Namespaces
	defined    objects.Definitions
	crds       []*apiextensionsv1.CustomResourceDefinition // not compiled
	server     *rest.Config                                // nil without a real API server
	rivals     []Subject
	observe    func() any
	seed       int64
	objects    int
	budget     time.Duration
	without    []Law
	dir        string // folder of stored cases, or empty
	only       string // file of the one case to replay, or empty
	allowed    []Allowance
	gaps       []time.Duration
	step       func(Step)
	errs       []error

	internals
}

// internals are settings of a run that users cannot set.
type internals struct {
	bubble   func(func(ctx context.Context)) // runs a function in a synctest bubble, or nil
	progress func(text string)               // logs the progress of a long run, or nil
	unused   map[explore.Family]bool         // input families that a test disables
	found    func(*Violation)                // is called for each finding, or nil
}

func newOptions(in Options, i internals) options {
	o := options{
		exceptions: in.Exceptions, namespaces: in.Namespaces, crds: in.CRDs, server: in.APIServer, rivals: slices.Clone(in.Rivals),
		observe: in.Observe, seed: in.Seed, objects: in.Objects, budget: in.Budget, without: in.Without, dir: in.Store,
		only: in.Replay, allowed: in.AllowInconclusive, gaps: in.TimeGaps, step: in.Progress, internals: i, defined: objects.Definitions{},
	}
	if o.seed == 0 {
		o.seed = DefaultSeed
	}
	o.objects = limit(o.objects, DefaultObjects, math.MaxInt)
	o.budget = limit(o.budget, DefaultBudget, math.MaxInt64)
	if o.dir == NoStore {
		o.dir = ""
	}
	for _, object := range in.Samples {
		doc, err := documentOf(object)
		if err != nil {
			o.errs = append(o.errs, fmt.Errorf("a sample cannot be encoded: %w", err))
			continue
		}
		o.samples = append(o.samples, doc)
	}
	for _, crd := range in.CRDs {
		if err := o.defined.Add(crd); err != nil {
			o.errs = append(o.errs, err)
		}
	}
	o.errs = append(o.errs, checkExceptions(in.Exceptions), checkAllowances(in.AllowInconclusive), checkLaws("Without", in.Without))
	return o
}

// limit applies the rule of Options: zero is the default, a negative number means no limit.
func limit[T int | time.Duration](value, byDefault, unlimited T) T {
	switch {
	case value == 0:
		return byDefault
	case value < 0:
		return unlimited
	}
	return value
}

func documentOf(object runtime.Object) (any, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	doc, err := tree.Decode(encoded)
	if fields, ok := doc.(map[string]any); ok && fields["kind"] == nil {
		if gvks, _, err := objects.Builtins().ObjectKinds(object); err == nil {
			fields["apiVersion"], fields["kind"] = gvks[0].ToAPIVersionAndKind()
		}
	}
	return doc, err
}

// An Exception declares that the webhook breaks a law on purpose: it writes a new value in each call, removes elements,
// or overwrites values of the user.
type Exception struct {
	// Path is a field path, such as "metadata.annotations[example.com/at]" or
	// "spec.containers[*].image". Changes at the path and below it are ignored, and so are the
	// API server's errors about it. [*] matches any element, and * in the key of an element
	// matches any text: "spec.volumes[name=creds-*]". For L11 and L12, a path may also be
	// "rival:" and the name of a rival that the webhook conflicts with.
	Path string `json:"path"`
	// Law is the law that may be broken there. Empty means all laws.
	Law Law `json:"law,omitempty"`
	// Reason is repeated in the report. It must not be empty.
	Reason string `json:"reason"`
}

// elementIndex matches the index of a list element that is followed by a field, as in containers[0].env. A number at the
// end of a path may be a key, as in spec.ports[80].
var elementIndex = regexp.MustCompile(`\[[0-9]+\]\.`)

func checkExceptions(list []Exception) error {
	var errs []error
	for _, e := range list {
		switch {
		case e.Path == "" || e.Reason == "":
			errs = append(errs, fmt.Errorf("an exception needs a path and a reason: %+v", e))
		case e.Law != "" && !slices.Contains(Laws, e.Law):
			errs = append(errs, fmt.Errorf("exception for %s: there is no law %q", e.Path, e.Law))
		case elementIndex.MatchString(e.Path):
			errs = append(errs, fmt.Errorf("exception for %s: a path cannot select an element by its index, because the index changes when an element is added before it: write its key, such as [name=web], or [*] for all elements", e.Path))
		}
	}
	return errors.Join(errs...)
}

func checkAllowances(list []Allowance) error {
	var errs []error
	for _, a := range list {
		if a.Reason == "" {
			errs = append(errs, errors.New("AllowInconclusive needs a reason"))
		}
		errs = append(errs, checkLaws("AllowInconclusive", a.Laws))
	}
	return errors.Join(errs...)
}

func checkLaws(option string, laws []Law) error {
	for _, law := range laws {
		if !slices.Contains(Laws, law) {
			return fmt.Errorf("%s: there is no law %q", option, law)
		}
	}
	return nil
}

// allows returns the Reason of the Allowance for a law, and whether there is one.
func (o *options) allows(law Law) (reason string, ok bool) {
	for _, a := range o.allowed {
		if len(a.Laws) == 0 || slices.Contains(a.Laws, law) {
			return a.Reason, true
		}
	}
	return "", false
}

// checkGaps returns an error if the options do not allow time gaps.
func (o *options) checkGaps(subject Subject) error {
	if len(o.gaps) == 0 {
		o.bubble = nil
		return nil
	}
	if o.server != nil { // its connection was opened outside of the bubble and must not be used inside
		return errors.New("TimeGaps cannot be combined with APIServer: use a separate test for each")
	}
	if o.bubble == nil {
		return errors.New("TimeGaps needs idempotence.Check with a *testing.T")
	}
	for _, w := range subject.webhooks {
		if !w.InProcess {
			return fmt.Errorf("TimeGaps: webhook %q does not run in this process, so the test cannot advance its clock", w.Name)
		}
	}
	return nil
}
