// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A logbook records the calls of hooks for a type T, in order.
type logbook[T any] struct{ collection[entry[T]] }

// An entry is one call as the hook received it, before it changed the object.
type entry[T any] struct {
	review.Metadata
	hook        string
	object, old *T
	options     requestOptions
}

// requestOptions has the fields of CreateOptions, UpdateOptions and DeleteOptions that the specs
// read.
type requestOptions struct {
	metav1.TypeMeta    `json:",inline"`
	FieldManager       string   `json:"fieldManager"`
	GracePeriodSeconds *int64   `json:"gracePeriodSeconds"`
	DryRun             []string `json:"dryRun"`
}

// watch registers a mutating and a validating hook with the registration r, waits until both are enforced, and returns
// their logbook. The hooks call handle unless it is nil.
func watch[T any](ctx context.Context, r admissionregistrationv1.ValidatingWebhook, handle func(hook string, req *webhook.Request[T]) error) *logbook[T] {
	GinkgoHelper()
	seen := &logbook[T]{}
	install(ctx, seen.hook(mutating, r, handle), seen.hook(validating, r, handle))
	return seen
}

// hook returns a hook that records its calls in the logbook.
func (l *logbook[T]) hook(kind string, r admissionregistrationv1.ValidatingWebhook, handle func(hook string, req *webhook.Request[T]) error) *webhook.Hook {
	if r.Name == "" {
		r.Name = kind + ".example.com"
	}
	return hookOf(kind, r, func(_ context.Context, req *webhook.Request[T]) error {
		if err := write(l, kind, req); err != nil || handle == nil {
			return err
		}
		return handle(kind, req)
	})
}

func write[T any](l *logbook[T], hook string, req *webhook.Request[T]) error {
	e := entry[T]{hook: hook, Metadata: req.Metadata}
	var err error
	if e.old, err = req.OldObject(); err != nil {
		return err
	}
	if err := req.DecodeOptions(&e.options); err != nil && req.Operation != admissionv1.Connect { // it has no options
		return err
	}
	if req.Object != nil {
		object, err := json.Marshal(req.Object)
		if err != nil {
			return err
		}
		e.object = new(T)
		if err := json.Unmarshal(object, e.object); err != nil {
			return err
		}
	}
	l.add(e)
	return nil
}

// lines returns one line for each call, such as "mutating UPDATE pods/status ns/name object oldObject
// UpdateOptions". It omits parts that the request does not have. The line of a dry run ends with
// "dry-run".
func (l *logbook[T]) lines() []string {
	var lines []string
	for _, e := range l.all() {
		resource := strings.TrimSuffix(e.Resource.Resource+"/"+e.SubResource, "/")
		line := fmt.Sprintf("%s %s %s %s/%s", e.hook, e.Operation, resource, e.Namespace, e.Name)
		if e.object != nil {
			line += " object"
		}
		if e.old != nil {
			line += " oldObject"
		}
		if e.options.Kind != "" {
			line += " " + e.options.Kind
		}
		if e.DryRun {
			line += " dry-run"
		}
		lines = append(lines, line)
	}
	return lines
}

// eachHook returns the expected lines of a request that each hook receives once.
func eachHook(line string) []string { return []string{mutating + " " + line, validating + " " + line} }

// awaitCached waits until the API server's watch cache has the written object. An update that begins with
// an older object is repeated, and hooks are then called twice.
func awaitCached[T metav1.Object](ctx context.Context, get func(context.Context, string, metav1.GetOptions) (T, error), written T) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		cached, err := get(ctx, written.GetName(), metav1.GetOptions{ResourceVersion: "0"})
		return cached.GetResourceVersion(), err
	}, "10s", "5ms").WithContext(ctx).Should(Equal(written.GetResourceVersion()))
}

// A collection holds values that concurrent hooks add.
type collection[V any] struct {
	mu   sync.Mutex
	list []V
}

func (c *collection[V]) add(v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, v)
}

func (c *collection[V]) all() []V {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

// clear removes the values recorded during the setup of a spec.
func (c *collection[V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = nil
}
