// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

// watched runs Watch until the end of the test, and returns a counter of the calls of changed.
func watched(ctx context.Context, t *testing.T, k *Client, targets ...Target) *atomic.Int64 {
	t.Helper()
	var count atomic.Int64
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { k.Watch(ctx, targets, func() { count.Add(1) }) })
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	return &count
}

func testWatch(t *testing.T, c testCluster) {
	const change = `{"metadata": {"annotations": {"changed": "yes"}}}`
	k := c.cluster(t)
	webhooks, configurations := c.configuration(t, MutatingWebhookConfiguration, "a.example.com")
	service, services := c.apiService(t, "watched", "")
	definition, definitions := c.crd(t, "watched", testConversion)
	rows := []struct {
		why    string
		target Target // watched besides the Secret
		first  int64  // the number of objects that exist at the start
		change func(t *testing.T)
	}{
		{"the Secret is created", Target{Kind: APIService, Name: "none"}, 0, func(t *testing.T) {
			if err := k.WriteSecret(t.Context(), Secret{}); err != nil {
				t.Fatal(err)
			}
		}},
		{"the Secret is changed", Target{Kind: APIService, Name: "none"}, 1, func(t *testing.T) { kubetest.Merge(t, c.Resource("v1", "Secret", k.namespace), "ca", change) }},
		{"the Secret is deleted", Target{Kind: APIService, Name: "none"}, 1, func(t *testing.T) { kubetest.Delete(t, c.Resource("v1", "Secret", k.namespace), "ca") }},
		{"a configuration", webhooks, 1, func(t *testing.T) { kubetest.Merge(t, configurations, webhooks.Name, change) }},
		{"an APIService", service, 1, func(t *testing.T) { kubetest.Merge(t, services, service.Name, change) }},
		{"a CustomResourceDefinition", definition, 1, func(t *testing.T) { kubetest.Merge(t, definitions, definition.Name, change) }},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			ctx, log := testContext(t)
			count := watched(ctx, t, k, row.target)
			atLeast := func(n int64) {
				t.Helper()
				kubetest.Eventually(t, func() error { return nil }, func(error) bool { return count.Load() >= n })
			}
			atLeast(row.first)
			before := count.Load()
			row.change(t)
			atLeast(before + 1)
			if len(log.Lines) > 0 {
				t.Errorf("logged %q", <-log.Lines)
			}
		})
	}
}

func testWatchForbidden(t *testing.T, c testCluster) {
	target, r := c.configuration(t, MutatingWebhookConfiguration, "a.example.com")
	k := c.limited(t, slices.DeleteFunc(rightsFor(target), func(r right) bool { return r.verb == "watch" && r.group == "" }))
	kubetest.Eventually(t, func() error { return everything(t.Context(), k, target) }, func(err error) bool { return err == nil })
	k.retry = retry{first: time.Millisecond, longest: 2 * time.Millisecond}
	ctx, log := testContext(t)
	count := watched(ctx, t, k, target)
	kubetest.Eventually(t, func() error { return nil }, func(error) bool { return count.Load() > 0 })
	want := "Secret " + k.namespace + "/ca: no permission to watch it: grant the verb watch on secrets"
	if line := <-log.Lines; !strings.Contains(line, want) {
		t.Errorf("logged %q, want %q", line, want)
	}
	// The watch of the target still works.
	before := count.Load()
	kubetest.Merge(t, r, target.Name, `{"metadata": {"annotations": {"changed": "yes"}}}`)
	kubetest.Eventually(t, func() error { return nil }, func(error) bool { return count.Load() > before })
	if len(log.Lines) > 0 {
		t.Errorf("logged again: %q", <-log.Lines)
	}
}

// fakeWatches returns a client that gets its watches from next. n is 1 for the first watch.
func fakeWatches(next func(n int) (watch.Interface, error)) *Client {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{secrets: "SecretList"})
	var n atomic.Int64
	client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		w, err := next(int(n.Add(1)))
		return true, w, err
	})
	return &Client{client: client, namespace: "ns", secretName: "ca", retry: retry{first: time.Second, longest: time.Minute}}
}

// TestWatchBacksOff makes the first nine watches fail or end at once. The pauses between the attempts must grow. The
// tenth watch stays open for most of an hour. When it ends, the next one must begin within a second.
func TestWatchBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		lasting := watch.NewFake()
		k := fakeWatches(func(n int) (watch.Interface, error) {
			tries = append(tries, time.Now())
			switch {
			case n == 10:
				return lasting, nil
			case n == 11:
				return watch.NewFake(), nil
			case n%3 == 0: // closed at once
				w := watch.NewFake()
				w.Stop()
				return w, nil
			case n%3 == 1: // answered with 410 Gone
				w := watch.NewRaceFreeFake()
				w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
				return w, nil
			}
			return nil, errors.New("no such host")
		})
		ctx, log := testContext(t)
		watched(ctx, t, k)
		<-time.After(time.Hour)
		synctest.Wait()
		if len(tries) != 10 {
			t.Fatalf("tried %d times, want 10", len(tries))
		}
		for i := 1; i < 10; i++ {
			longest := min(time.Second<<(i-1), time.Minute)
			if gap := tries[i].Sub(tries[i-1]); gap < longest/2 || gap > longest {
				t.Errorf("gap %d is %s, want %s at most and half of it at least", i, gap, longest)
			}
		}
		end := time.Now()
		lasting.Stop()
		<-time.After(time.Minute)
		synctest.Wait()
		if len(tries) != 11 || tries[10].Sub(end) > time.Second {
			t.Errorf("tried at %s after one that ended at %s, want it soon", tries[10:], end)
		}
		if len(log.Lines) > 0 {
			t.Errorf("logged %q", <-log.Lines)
		}
	})
}

// TestWatchWithoutPermission denies the permission to watch. The watch must be tried again about once a minute, so that
// a permission granted later is noticed.
func TestWatchWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		k := fakeWatches(func(n int) (watch.Interface, error) {
			if tries.Store(int64(n)); n == 20 {
				w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
				w.Add(&metav1.Status{})
				return w, nil
			}
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "ca", errors.New(`User "x" cannot watch resource "secrets"`))
		})
		ctx, log := testContext(t)
		count := watched(ctx, t, k)
		<-time.After(9 * time.Minute)
		synctest.Wait()
		if tries.Load() < 9 || tries.Load() > 19 || count.Load() != 0 {
			t.Errorf("tried %d times in 9 minutes, %d changes", tries.Load(), count.Load())
		}
		if len(log.Lines) != 1 {
			t.Errorf("logged %d lines, want 1", len(log.Lines))
		}
		<-time.After(11 * time.Minute)
		synctest.Wait()
		if tries.Load() != 20 || count.Load() != 1 {
			t.Errorf("tried %d times, %d changes; want 20, and 1", tries.Load(), count.Load())
		}
	})
}

func TestRetryDelay(t *testing.T) {
	r := retry{first: time.Second, longest: time.Minute}
	for failures := range 100 {
		longest := time.Minute
		if failures < 6 {
			longest = time.Second << failures
		}
		for range 10 {
			if d := r.delay(failures); d < longest/2 || d > longest {
				t.Errorf("after %d failures %s, want %s at most", failures, d, longest)
			}
		}
	}
}
