// SPDX-License-Identifier: Apache-2.0

package callcontext

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

func newContext(parent context.Context, budget time.Duration) *Context {
	c := new(Context)
	c.Begin(parent, &HookLog{Name: "pods.example.com"}, time.Now(), budget)
	return c
}

func TestContextHasValuesADeadlineAndAnEnd(t *testing.T) {
	type key struct{}
	c := newContext(context.WithValue(t.Context(), key{}, "x"), time.Hour)
	if left := time.Until(first(c.Deadline())); c.Value(key{}) != "x" || left > time.Hour || left < time.Minute {
		t.Errorf("value %v, %s left", c.Value(key{}), left)
	}
	select {
	case <-c.Done():
		t.Error("done before it ended")
	default:
	}
	if c.Err() != nil || context.Cause(c) != nil {
		t.Errorf("before the end: %v, cause %v", c.Err(), context.Cause(c))
	}
	c.Cancel(context.Canceled)
	c.Expire() // has no effect after Cancel
	<-c.Done()
	if c.Err() != context.Canceled || context.Cause(c) != context.Canceled || c.Expired() { //nolint:errorlint // as contexts have it
		t.Errorf("after the end: %v, cause %v", c.Err(), context.Cause(c))
	}
	if got := fmt.Sprint(c); got != "context of webhook pods.example.com" {
		t.Errorf("printed as %s", got)
	}
}

func first[A, B any](a A, _ B) A { return a }

func TestContextKeepsAnEarlierDeadlineOfItsParent(t *testing.T) {
	early, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want, _ := early.Deadline()
	if got := first(newContext(early, time.Hour).Deadline()); !got.Equal(want) {
		t.Errorf("got %s, want %s, the deadline of the parent", got, want)
	}
	if got := first(newContext(early, time.Second).Deadline()); !got.Before(want) {
		t.Errorf("got %s, want the context's own deadline", got)
	}
}

// TestDerivedContextsEndWithTheCall derives contexts as handlers do. They must need no goroutine, and must end when the
// context of the call ends.
func TestDerivedContextsEndWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContext(t.Context(), time.Hour)
		before := runtime.NumGoroutine()
		plain, cancel := context.WithCancel(c)
		short, cancelShort := context.WithTimeout(context.WithValue(plain, t, 1), time.Minute)
		stopped, cancelStopped := context.WithCancel(c)
		called := make(chan string, 3)
		stop := context.AfterFunc(c, func() { called <- "stopped" })
		context.AfterFunc(c, func() { called <- "called" })
		if n := runtime.NumGoroutine(); n != before {
			t.Errorf("%d goroutines more", n-before)
		}
		if !stop() || stop() {
			t.Error("stop did not return true once and then false")
		}
		cancelStopped()
		c.Expire()
		synctest.Wait()
		for name, derived := range map[string]context.Context{"plain": plain, "short": short} {
			if !errors.Is(derived.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(derived), context.DeadlineExceeded) {
				t.Errorf("%s: %v, cause %v", name, derived.Err(), context.Cause(derived))
			}
		}
		if !errors.Is(stopped.Err(), context.Canceled) {
			t.Errorf("a context that was canceled before the call ended: %v", stopped.Err())
		}
		cancel()
		cancelShort()
		late, cancelLate := context.WithCancel(c)
		defer cancelLate()
		if late.Err() == nil {
			t.Error("a context derived after the end has not ended")
		}
		if again := c.AfterFunc(func() { called <- "called" }); again() {
			t.Error("stop returned true for a function that was called at once")
		}
		synctest.Wait()
		if close(called); <-called+<-called+<-called != "calledcalled" {
			t.Error("AfterFunc did not call each function once")
		}
	})
}

func TestContextHasTheLoggerOfTheCall(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	c := newContext(logr.NewContext(t.Context(), logger), time.Hour)
	c.Describe(&review.Metadata{UID: "u-1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Operation: "CREATE", Namespace: "shop", Name: strings.Repeat("n", 1000)})
	derived := context.WithValue(c, t, 1)
	logr.FromContextOrDiscard(derived).Info("logr")
	slog.New(slog.Default().Handler()).Info("not this one")
	logr.FromContextAsSlogLogger(derived).Info("slog")
	logr.FromContextOrDiscard(logr.NewContext(derived, logger)).Info("its own")
	const keys = `"webhook"="pods.example.com" "requestUID"="u-1" "gvk"="Pod (v1)" "operation"="CREATE" "namespace"="shop" "name"="nnn`
	if len(lines) != 3 || !strings.Contains(lines[0], `"msg"="logr" `+keys) || !strings.Contains(lines[1], `"msg"="slog" `+keys) || strings.Contains(lines[2], "u-1") {
		t.Errorf("got %q", lines)
	}
	if len(lines[0]) > 600 {
		t.Errorf("a long value is not clipped: %s", lines[0])
	}
}

// TestVerbosityOfTheLoggerInUse enables and disables V(1) in the hook's logger, in the logger of the request and in
// slog's default. HookLog.enabled must report the setting of the logger that the hook uses.
func TestVerbosityOfTheLoggerInUse(t *testing.T) {
	logger := func(level int) logr.Logger {
		return funcr.New(func(string, string) {}, funcr.Options{Verbosity: level})
	}
	for _, level := range []int{0, 1} {
		if got := (&HookLog{Logger: ptr.To(logger(level))}).enabled(logr.NewContext(t.Context(), logger(1-level))); got != (level == 1) {
			t.Errorf("its own logger at V(%d): %t", level, got)
		}
		if got := new(HookLog).enabled(logr.NewContext(t.Context(), logger(level))); got != (level == 1) {
			t.Errorf("the logger of the request at V(%d): %t", level, got)
		}
		standard := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(new(strings.Builder), &slog.HandlerOptions{Level: slog.Level(-level)})))
		if got := new(HookLog).enabled(t.Context()); got != (level == 1) {
			t.Errorf("slog's default at %d: %t", -level, got)
		}
		slog.SetDefault(standard)
	}
}
