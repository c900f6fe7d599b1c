// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWatchReportsChangedConfigurations(t *testing.T) {
	change := func(f func([]any) []any) func(*testing.T, *fakeCluster) {
		return func(_ *testing.T, c *fakeCluster) {
			object := c.stored[validating].DeepCopy()
			object.Object["webhooks"] = f(object.Object["webhooks"].([]any))
			c.stored[validating] = object
		}
	}
	for _, in := range []struct {
		reason string
		change func(*testing.T, *fakeCluster)
		want   Phase
	}{
		{"nothing happens", func(*testing.T, *fakeCluster) {}, Installed},
		{"a caBundle is injected", change(func(list []any) []any {
			clientConfig(list[1].(map[string]any))["caBundle"] = "eA=="
			return list
		}), Installed},
		{"a configuration is deleted", func(_ *testing.T, c *fakeCluster) { delete(c.stored, mutating) }, Removed},
		{"a webhook is removed", change(func(list []any) []any { return list[:1] }), Removed},
		{"the marker is removed", change(func(list []any) []any { return list[1:] }), Removed},
		{"a failurePolicy is changed", change(func(list []any) []any {
			list[1].(map[string]any)["failurePolicy"] = string(admissionregistrationv1.Ignore)
			return list
		}), FailingOpen},
		{"another version installs", func(t *testing.T, c *fakeCluster) {
			other, _ := newFake(t, options(), labelling("a.example.com"), denying("b.example.com"), denying("c.example.com"))
			other.cluster = c
			if err := other.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}, Superseded},
	} {
		t.Run(in.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i, c := newFake(t, options(), labelling("a.example.com"), denying("b.example.com"))
				if err := i.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*watchInterval)
				defer cancel()
				in.change(t, c)
				if err := i.Watch(ctx); err != nil {
					t.Errorf("got %v", err)
				}
				if at := i.Status(); at.Phase != in.want || at.Err != nil {
					t.Errorf("got %+v, want %s", at, in.want)
				}
			})
		})
	}
}

func TestWatchReportsRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("b.example.com"))
		if err := i.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		stored := c.stored[validating]
		watch := func() Phase {
			ctx, cancel := context.WithTimeout(t.Context(), 2*watchInterval)
			defer cancel()
			_ = i.Watch(ctx)
			return i.Status().Phase
		}
		delete(c.stored, validating)
		if got := watch(); got != Removed {
			t.Errorf("deleted: %s", got)
		}
		c.stored[validating] = stored
		if got := watch(); got != Installed {
			t.Errorf("there again: %s", got)
		}
	})
}

// unreadable is a cluster in which all reads fail.
type unreadable struct{ cluster }

var errUnreadable = errors.New("the API server is away")

func (unreadable) read(context.Context, sort) (*unstructured.Unstructured, error) {
	return nil, errUnreadable
}

func TestFailedWatchCheckChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("b.example.com"))
		if err := i.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.cluster = unreadable{c}
		ctx, cancel := context.WithTimeout(t.Context(), 2*watchInterval)
		defer cancel()
		_ = i.Watch(ctx)
		if at := i.Status(); at.Phase != Installed || !errors.Is(at.Err, errUnreadable) {
			t.Errorf("got %+v", at)
		}
	})
}
