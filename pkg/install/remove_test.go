// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A finalizer delays the deletion of a configuration, and the API server still enforces it. Remove must then remove the
// webhooks from it.
func TestRemoveEmptiesConfigurationWithFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		o := options()
		o.Logger = funcr.New(func(_, line string) { log = append(log, line) }, funcr.Options{})
		i, c := newFake(t, o, denying("one.example.com"), labelling("two.example.com"))
		if err := i.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.held = []string{"example.com/audit"}
		if err := i.Remove(t.Context()); err != nil || c.deletes != 2 {
			t.Errorf("%v, %d deletions", err, c.deletes)
		}
		for s, object := range c.stored {
			if left := webhooks(object); len(left) > 0 {
				t.Errorf("%s: %v", s, left)
			}
		}
		if text := strings.Join(log, "\n"); !strings.Contains(text, `"finalizers"=["example.com/audit"]`) {
			t.Errorf("it does not name the finalizer: %s", text)
		}
	})
}

func TestRemoveReportsFinalizers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"))
		if err := i.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.held = []string{"example.com/audit", "example.com/more"}
		i.cluster = uncut{c}
		err := i.Remove(t.Context())
		if err == nil || !strings.Contains(err.Error(), "ValidatingWebhookConfiguration hooks still exists, because its deletion waits for the finalizers example.com/audit, example.com/more: ") {
			t.Errorf("got %v", err)
		}
	})
}

// uncut is a cluster that rejects all patches.
type uncut struct{ *fakeCluster }

func (uncut) cut(context.Context, sort, live, []int) error { return errors.New("you may not patch") }

// If a deletion has no effect, Remove must pause before it repeats the deletion.
func TestRemovePausesBetweenTwoDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"))
		if err := i.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.ignored = 1 << 30
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		err := i.Remove(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || c.deletes > 101 || !strings.HasPrefix(err.Error(), "ValidatingWebhookConfiguration hooks still exists: ") {
			t.Errorf("%d deletions in 10 s: %v", c.deletes, err)
		}
		c.ignored = 3
		if err := i.Remove(t.Context()); err != nil || c.has(validating) {
			t.Errorf("%v, still there: %v", err, c.has(validating))
		}
	})
}

func TestChangeIsRetriedAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"))
		c.changes = attempts
		began := time.Now()
		if err := i.Apply(t.Context()); !errors.Is(err, errChanged) || time.Since(began) != (attempts-1)*defaultInterval/10 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		ctx, stop := context.WithTimeout(t.Context(), defaultInterval/20)
		defer stop()
		c.changes, c.applies = attempts, 0
		if err := i.Apply(ctx); !errors.Is(err, errChanged) || c.applies != 1 {
			t.Errorf("%v after %d applies", err, c.applies)
		}
	})
}

// A user who deleted the namespace first can still remove the configurations.
func TestRemoveWithoutANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"), labelling("two.example.com"))
		if err := i.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.cluster = placeless{c}
		for range 2 {
			if err := i.Remove(t.Context()); err != nil || len(c.stored) > 0 || i.Status().Phase != Removed || i.Status().Err != nil {
				t.Errorf("%v, %d left, %+v", err, len(c.stored), i.Status())
			}
		}
	})
}

// Remove must ignore a missing namespace only after it has deleted the configurations.
func TestRemoveReportsAConfigurationThatItCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"))
		if err := i.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.cluster = noReads{placeless{c}}
		if err := i.Remove(t.Context()); !apierrors.IsNotFound(err) || i.Status().Phase == Removed || !c.has(validating) {
			t.Errorf("%v, %+v, still there: %v", err, i.Status(), c.has(validating))
		}
	})
}

// noReads is a cluster in which reading a configuration fails with the error for a missing namespace.
type noReads struct{ placeless }

func (n noReads) read(ctx context.Context, _ sort) (*unstructured.Unstructured, error) {
	return nil, n.ask(ctx, "")
}

// placeless is a cluster without the namespace of the webhook.
type placeless struct{ *fakeCluster }

func (placeless) ask(context.Context, string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")
}
