// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A fakeCluster stores the applied configurations. It answers marker requests by the field answer or, without it, by
// the stored configurations. It does not merge as server-side apply does; tests on a real API server cover that.
type fakeCluster struct {
	mu       sync.Mutex
	t        *testing.T
	stored   map[sort]*unstructured.Unstructured
	history  [][]map[string]any // the webhooks after each change of a configuration
	log      []string           // the failure policies in both configurations after each change
	applies  int
	deletes  int
	versions int
	before   func()           // called once, before an apply
	changes  int              // the number of calls that return errChanged
	fails    int              // the number of calls that return another error
	after    int              // the number of calls that succeed before the failing ones
	answer   func(int) string // returns the answer to the n-th marker request, or an error's text; if nil, the stored objects decide
	asked    int
	at       []time.Duration // the times of the marker requests since the first one
	began    time.Time
	nowhere  error      // the answer to a request with noMarker, which checks the namespace
	removed  func(sort) // called after a configuration was deleted
	held     []string   // finalizers, which delay deletions
	ignored  int        // the number of deletions that have no effect yet
	// unbundled injects a caBundle only into the marker.
	unbundled bool
	bundled   sort                       // with unbundled, webhooks of this sort get their caBundles nevertheless
	status    *unstructured.Unstructured // the Deployment with its status
}

func (c *fakeCluster) read(_ context.Context, s sort) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stored[s] == nil {
		return nil, nil
	}
	return c.stored[s].DeepCopy(), nil
}

func (c *fakeCluster) apply(_ context.Context, s sort, object *unstructured.Unstructured, _ bool) error {
	if before := c.before; before != nil {
		c.before = nil
		before()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applies++
	if c.changes > 0 {
		c.changes--
		return fmt.Errorf("cannot apply: %w", errChanged)
	}
	if c.fails > 0 && c.after == 0 {
		c.fails--
		return errors.New("the API server is away")
	}
	c.after = max(0, c.after-1)
	if c.stored == nil {
		c.stored = map[sort]*unstructured.Unstructured{}
	}
	if rv := object.GetResourceVersion(); rv != "" && rv != c.version(s) {
		return fmt.Errorf("cannot apply: %w", errChanged)
	}
	c.store(s, object.DeepCopy())
	return nil
}

// version returns the version of the stored configuration, or "".
func (c *fakeCluster) version(s sort) string {
	if c.stored[s] == nil {
		return ""
	}
	return c.stored[s].GetResourceVersion()
}

// store stores a configuration with a new resourceVersion. Its managed fields say that fieldManager applied all
// webhooks.
func (c *fakeCluster) store(s sort, object *unstructured.Unstructured) {
	own := map[string]any{}
	for _, entry := range webhooks(object) {
		own[fmt.Sprintf(`k:{"name":%q}`, nameOf(entry))] = map[string]any{}
	}
	text, err := json.Marshal(map[string]any{"f:webhooks": own})
	if err != nil {
		c.t.Error(err)
	}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields(string(text))}})
	if c.unbundled {
		for n, entry := range webhooks(object) {
			if n == 0 || s == c.bundled {
				clientConfig(entry)["caBundle"] = "eA=="
			}
		}
	}
	c.versions++
	object.SetResourceVersion(strconv.Itoa(c.versions))
	c.stored[s] = object
	c.history = append(c.history, webhooks(object))
	c.note()
}

func (c *fakeCluster) note() {
	var parts []string
	for _, s := range sorts {
		if c.stored[s] != nil {
			if policies := policiesOf(webhooks(c.stored[s])); policies != "" {
				parts = append(parts, policies)
			}
		}
	}
	if now := strings.Join(parts, ", "); len(c.log) == 0 || c.log[len(c.log)-1] != now {
		c.log = append(c.log, now)
	}
}

func (c *fakeCluster) cut(_ context.Context, s sort, l live, indexes []int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails > 0 && c.after == 0 {
		c.fails--
		return errors.New("the API server is away")
	}
	c.after = max(0, c.after-1)
	if l.resourceVersion != c.version(s) {
		return fmt.Errorf("cannot cut: %w", errChanged)
	}
	object := c.stored[s].DeepCopy()
	list := object.Object["webhooks"].([]any)
	for _, index := range slices.Backward(slices.Sorted(slices.Values(indexes))) {
		list = slices.Delete(list, index, index+1)
	}
	object.Object["webhooks"] = list
	c.store(s, object)
	return nil
}

func (c *fakeCluster) remove(_ context.Context, s sort, _ live) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deletes++
	switch {
	case c.fails > 0 && c.after == 0:
		c.fails--
		return errors.New("the API server is away")
	case c.ignored > 0:
		c.ignored--
		return nil
	case len(c.held) > 0:
		object := c.stored[s].DeepCopy()
		object.SetFinalizers(c.held)
		object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		c.store(s, object)
		return nil
	}
	c.after = max(0, c.after-1)
	delete(c.stored, s)
	c.note()
	if c.removed != nil {
		c.removed(s)
	}
	return nil
}

func (c *fakeCluster) ask(_ context.Context, label string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if label == noMarker {
		return c.nowhere
	}
	if c.asked == 0 {
		c.began = time.Now()
	}
	c.at = append(c.at, time.Since(c.began))
	c.asked++
	if c.answer != nil {
		return answerOf(c.answer(c.asked))
	}
	for _, object := range c.stored {
		if text, err := object.MarshalJSON(); err != nil || strings.Contains(string(text), label) {
			return answerOf("enforced")
		}
	}
	return nil
}

func (c *fakeCluster) deployment(context.Context, string) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == nil {
		return nil, errors.New("there is no Deployment")
	}
	return c.status, nil
}

// answerOf returns the error with which an API server answers a marker request, by its name. An unknown name becomes
// the text of the error.
func answerOf(text string) error {
	switch text {
	case "enforced":
		status := apierrors.NewForbidden(leases.GroupResource(), markerObject, nil)
		status.ErrStatus.Message = fmt.Sprintf("admission webhook %q denied the request: %s", markerName("hooks"), markerText)
		return status
	case "unanswered":
		return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: failed to call webhook: connection refused", markerName("hooks")))
	case "absent":
		return nil
	case "forbidden":
		return apierrors.NewForbidden(leases.GroupResource(), markerObject, errors.New(`User "x" cannot patch resource "leases" in API group "coordination.k8s.io"`))
	}
	return errors.New(text)
}

func options() Options {
	return Options{
		Configuration: webhook.ConfigurationOptions{
			Name: "hooks", Service: &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "hooks"},
		},
		Logger: logr.FromSlogHandler(slog.DiscardHandler),
	}
}

// authority returns the certificate of a CA.
func authority(t *testing.T) []byte {
	t.Helper()
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	return ca.Bundle
}

func denying(name string) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: name, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
}

func labelling(name string) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: name, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error { return nil })
}

// newFake returns an installer with a fake cluster.
func newFake(t *testing.T, o Options, hooks ...*webhook.Hook) (*Installer, *fakeCluster) {
	t.Helper()
	i, err := newInstaller(o, hooks)
	if err != nil {
		t.Fatal(err)
	}
	c := &fakeCluster{t: t}
	i.cluster = c
	return i, c
}
