// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// An Option changes how a run goes.
type Option func(*options)

type options struct {
	samples    []sample
	exceptions []Exception
	namespaces []*corev1.Namespace
	places     *places
	defined    map[schema.GroupVersionKind]*definition
	crds       []*apiextensionsv1.CustomResourceDefinition // as they were given
	server     *rest.Config                                // of a real API server, or nil
	rivals     []Subject
	observe    func() any
	seed       int64
	objects    int
	budget     time.Duration
	without    []Law
	unused     map[family]bool // by tests
	errs       []error

	memory
}

// The defaults of a run.
const (
	// DefaultSeed is the seed of a run that is not given one, so that runs of one test agree.
	DefaultSeed = 1
	// DefaultObjects is how many objects a run makes.
	DefaultObjects = 40
	// DefaultBudget ends a run of a slow webhook early. The report then says so.
	DefaultBudget = 5 * time.Minute
)

func newOptions(list []Option) options {
	o := options{seed: DefaultSeed, objects: DefaultObjects, budget: DefaultBudget}
	for _, option := range list {
		option(&o)
	}
	return o
}

// A sample is an object to start from.
type sample struct{ doc any }

// Samples are objects that the webhook acts on: they carry the labels and annotations that switch
// it on. A run starts from them, and makes others of them. They must have apiVersion and kind,
// unless their Go type is a built-in one.
func Samples(objects ...runtime.Object) Option {
	return func(o *options) {
		for _, object := range objects {
			doc, err := documentOf(object)
			if err != nil {
				o.errs = append(o.errs, fmt.Errorf("a sample is no object: %w", err))
				continue
			}
			o.samples = append(o.samples, sample{doc})
		}
	}
}

func documentOf(object runtime.Object) (any, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	doc, err := tree.Decode(encoded)
	if fields, ok := doc.(map[string]any); ok && fields["kind"] == nil {
		if gvks, _, err := builtins.ObjectKinds(object); err == nil {
			fields["apiVersion"], fields["kind"] = gvks[0].ToAPIVersionAndKind()
		}
	}
	return doc, err
}

// An Exception is a way to break a law that is intended.
type Exception struct {
	// Path is a field path such as "metadata.annotations[example.com/at]" or "spec.containers[*].image":
	// what happens there, and below, is not looked at, nor what the API server says of it. [*] stands for anything.
	Path string `json:"path"`
	// Law is the one that may be broken there; empty, all may.
	Law Law `json:"law,omitempty"`
	// Reason is for those who read the report. It must not be empty.
	Reason string `json:"reason"`
}

// Exceptions declare what is intended: a value that is fresh each time, elements that the webhook
// removes on purpose, or that it enforces over the user. For the laws about rivals (L11, L12),
// a path may also be "rival:" and the name of a rival that the webhook is known not to get on with.
func Exceptions(list ...Exception) Option {
	return func(o *options) {
		for _, e := range list {
			switch {
			case e.Path == "" || e.Reason == "":
				o.errs = append(o.errs, fmt.Errorf("an exception needs a path and a reason: %+v", e))
			case e.Law != "" && !slices.Contains(Laws, e.Law):
				o.errs = append(o.errs, fmt.Errorf("exception for %s: there is no law %q", e.Path, e.Law))
			}
		}
		o.exceptions = append(o.exceptions, list...)
	}
}

// Rivals are other webhooks of the cluster, each of which the subject has to live with.
func Rivals(subjects ...Subject) Option {
	return func(o *options) { o.rivals = append(o.rivals, subjects...) }
}

// Observe tells what the webhook has written outside of the object: it must not change in a dry
// run. The value is compared as JSON.
func Observe(state func() any) Option { return func(o *options) { o.observe = state } }

// Seed has a run make other objects: the same ones for the same seed.
func Seed(seed int64) Option { return func(o *options) { o.seed = seed } }

// Objects is how many objects a run makes, [DefaultObjects] by default. Where the webhook is for several
// kinds they share them, but each gets six, or as many as are asked for if that is less.
func Objects(n int) Option { return func(o *options) { o.objects = n } }

// Budget is how long a run may take at most, [DefaultBudget] by default.
func Budget(d time.Duration) Option { return func(o *options) { o.budget = d } }

// Without leaves out laws.
func Without(laws ...Law) Option { return func(o *options) { o.without = append(o.without, laws...) } }
