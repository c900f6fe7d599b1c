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

	"github.com/admitkit/admitkit/test/proof/replica/control"
)

// A load sends requests to create objects to the API server at a steady rate, without waiting for earlier
// responses.
type load struct {
	samples
	start   time.Time
	stop    context.CancelFunc
	stopped chan struct{}
}

// startLoad makes so many calls a second until it is stopped.
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
			calls.Go(func() { l.add(at, call(context.WithoutCancel(ctx))) }) // a call made is a call counted
		}
		// A machine that was busy makes up for the calls it is late with.
		due.Reset(time.Until(l.start.Add(time.Duration(made+1) * every)))
	}
}

// awaitCalls returns when so many more have ended.
func (l *load) awaitCalls(t *testing.T, more int) {
	t.Helper()
	before, _ := l.count()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		calls, _ := l.count()
		return calls >= before+more, nil
	})
	if err != nil {
		t.Fatalf("not %d more calls in a minute", more)
	}
}

// end stops making calls and waits for those that were made.
func (l *load) end() {
	l.stop()
	<-l.stopped
}

// create returns a call that has the API server ask both hooks and store nothing. It fails
// unless the hooks decided.
func create(namespace string, data map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		created, err := clients.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "proof-"}, Data: data,
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && created.Data[control.Seen] == "" {
			err = errors.New("created without the mutating hook")
		}
		return err
	}
}
