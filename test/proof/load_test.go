// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// A load makes calls at a steady rate, without waiting for earlier ones.
type load struct {
	samples
	start   time.Time
	stop    context.CancelFunc
	stopped chan struct{}
}

// startLoad calls the function call at a constant rate per second until the load is stopped.
func startLoad(t *testing.T, rate int, call func(context.Context) error) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	l := &load{start: time.Now(), stop: stop, stopped: make(chan struct{})}
	go l.run(ctx, rate, call)
	t.Cleanup(func() { l.end() })
	return l
}

func (l *load) run(ctx context.Context, rate int, call func(context.Context) error) {
	defer close(l.stopped)
	var calls sync.WaitGroup
	defer calls.Wait()
	every := time.Second / time.Duration(rate)
	due := time.NewTimer(every)
	defer due.Stop()
	for made := 1; ; made++ {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			at := time.Now()
			calls.Go(func() { l.add(at, call(context.WithoutCancel(ctx))) }) // stopping the load does not cancel the call
		}
		// If calls are late, make them without a pause.
		due.Reset(time.Until(l.start.Add(time.Duration(made+1) * every)))
	}
}

// awaitCalls waits until the given number of further calls have ended.
func (l *load) awaitCalls(t *testing.T, more int) {
	t.Helper()
	before, _ := l.count()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		calls, _ := l.count()
		return calls >= before+more, nil
	})
	if err != nil {
		t.Fatalf("fewer than %d further calls ended in a minute", more)
	}
}

// end stops the load and waits for the calls in flight.
func (l *load) end() {
	l.stop()
	<-l.stopped
}

// create returns a function that creates a ConfigMap as a dry run, for which the API server calls both hooks. The
// function fails if a hook fails or the mutating hook was not called. It uses the API servers in turn.
func create(namespace string, data map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		return plane.call(func(client *kubernetes.Clientset) error { return createWith(ctx, client, namespace, data) })
	}
}

func createWith(ctx context.Context, clients kubernetes.Interface, namespace string, data map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	created, err := clients.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "proof-"}, Data: data,
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil && created.Data[Seen] == "" {
		err = errors.New("the API server did not call the mutating hook")
	}
	return err
}
