// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// markedCall returns the body of a call in which every text contains a mark. All marks have the same length, so that a
// mark of another call appears if the calls share memory.
func markedCall(mark string) []byte {
	object := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + mark + `","labels":{"` + mark + `":"` + mark + `"},` +
		`"managedFields":[{"manager":"` + mark + `","fieldsType":"FieldsV1","fieldsV1":{"f:` + mark + `":{}}}]},"new":{"` + mark + `":["` + mark + `"]},` +
		`"spec":{"containers":[{"name":"` + mark + `","image":"` + mark + `","args":["` + mark + `","\u003c` + mark + `"],"resources":{"limits":{"` + mark + `":"1"}}}]}}`
	return call{
		uid: "u-" + mark, operation: admissionv1.Update, name: mark, namespace: mark, object: object, oldObject: object,
		options: `{"kind":"UpdateOptions","fieldManager":"` + mark + `"}`,
		more:    `"userInfo":{"username":"` + mark + `","uid":"` + mark + `","groups":["` + mark + `"],"extra":{"` + mark + `":["` + mark + `"]}}`,
	}.body()
}

// A keeper keeps the values that handlers got, and compares them later.
type keeper struct {
	t        *testing.T
	mu       sync.Mutex
	kept     []keptValue
	answered sync.Map // by mark: a channel that is closed after the answer
}

// overrun makes a handler overrun its deadline: it waits for the deadline of the call, then for the answer, and returns
// true. For a mark that is not in k.answered, it returns false at once.
func (k *keeper) overrun(ctx context.Context, mark string) bool {
	answered, overruns := k.answered.Load(mark)
	if overruns {
		<-ctx.Done()
		<-answered.(chan struct{})
	}
	return overruns
}

type keptValue struct {
	what, mark, then string
	now              func() string
}

// keep records the current text of a value, so that done can compare it with a later text. The function now returns the
// current text.
func (k *keeper) keep(what, mark string, now func() string) {
	then := now()
	k.check(what, mark, then)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, keptValue{what, mark, then, now})
}

// check fails the test if text lacks the mark of its call, or contains the mark of another call.
func (k *keeper) check(what, mark, text string) {
	switch n := strings.Count(text, mark); {
	case n == 0:
		k.t.Errorf("%s of %s says nothing: %.500s", what, mark, text)
	case n != strings.Count(text, "mark-"):
		k.t.Errorf("%s of %s: %.500s", what, mark, text)
	}
}

// done waits for the goroutines that still run, and then checks that no kept value has changed.
func (k *keeper) done() {
	synctest.Wait()
	for _, s := range k.kept {
		if now := s.now(); now != s.then {
			k.t.Errorf("%s of %s changed:\nthen %.500s\n now %.500s", s.what, s.mark, s.then, now)
		}
	}
	k.t.Logf("%d things were kept", len(k.kept))
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	return fmt.Sprint(string(text), err)
}

// keepAll returns a handler that changes the object with change, and records everything that a handler can get.
func keepAll[T any](k *keeper, change func(*T)) func(context.Context, *webhook.Request[T]) error {
	return func(ctx context.Context, req *webhook.Request[T]) error {
		mark := strings.Clone(req.Name)
		overruns := k.overrun(ctx, mark)
		early := *req // a copy without a decoded old object
		old, err := req.OldObject()
		var options metav1.UpdateOptions
		err = errors.Join(err, req.DecodeOptions(&options))
		raw, rawOld, whole, unknown := req.RawObject(), req.RawOldObject(), req.AdmissionRequest(), req.UnknownFields()
		change(req.Object)
		object, metadata, copied := req.Object, req.Metadata, *req
		k.keep("the object", mark, func() string { return asJSON(object) })
		k.keep("the old object", mark, func() string { return asJSON(old) })
		k.keep("the metadata", mark, func() string { return asJSON(metadata) })
		k.keep("the request", mark, func() string { return asJSON(req.Metadata) + asJSON(req.Object) })
		k.keep("a copy of the request", mark, func() string {
			old, err := copied.OldObject()
			return asJSON(copied.Metadata) + asJSON(copied.Object) + asJSON(old) + fmt.Sprint(err)
		})
		k.keep("the bytes", mark, func() string { return string(raw) + string(rawOld) })
		k.keep("the AdmissionRequest", mark, func() string { return asJSON(whole) })
		k.keep("the options", mark, func() string { return asJSON(options) })
		k.keep("the context", mark, func() string { return logged(ctx) })
		if len(unknown) > 0 {
			k.keep("the unknown fields", mark, func() string { return mark + strings.Join(unknown, " ") })
		}
		go k.follow(mark, func() []string { return look(&early, overruns) })
		return err
	}
}

// logged returns the line that the logger of a context would write now.
func logged(ctx context.Context) string {
	sink := logr.FromContextOrDiscard(ctx).GetSink().(*lastLine)
	return sink.line("kept")
}

// look returns the documents of a request that can still be read, during the call or after it. If overruns is true, all
// of them must be there.
func look[T any](req *webhook.Request[T], overruns bool) []string {
	var seen []string
	fresh := *req
	old, err := fresh.OldObject()
	if err == nil {
		seen = append(seen, asJSON(old))
	}
	for _, raw := range [][]byte{req.RawObject(), req.RawOldObject(), req.AdmissionRequest().OldObject.Raw} {
		if raw != nil {
			seen = append(seen, string(raw))
		}
	}
	if overruns && (err != nil || len(seen) != 4) {
		seen = append(seen, fmt.Sprintf("a handler that was left behind lost its documents: %v %d", err, len(seen)))
	}
	return seen
}

// follow reads the documents four times during other calls, and checks that they have the mark of their own call.
func (k *keeper) follow(mark string, look func() []string) {
	for range 4 {
		for _, text := range look() {
			k.check("a document", mark, text)
		}
		runtime.Gosched()
	}
}

// byteFields is an object with raw JSON fields. A rawKeeper keeps the slice passed to UnmarshalJSON without copying it.
type byteFields struct {
	Metadata json.RawMessage `json:"metadata"`
	Spec     rawKeeper       `json:"spec"`
	New      *rawKeeper      `json:"new"`
}

type rawKeeper struct{ raw []byte }

func (h *rawKeeper) UnmarshalJSON(raw []byte) error { h.raw = raw; return nil }
func (h rawKeeper) MarshalJSON() ([]byte, error)    { return h.raw, nil }

func keepRaw(k *keeper) func(context.Context, *review.Request) (*review.Decision, patch.Patch, error) {
	return func(ctx context.Context, req *review.Request) (*review.Decision, patch.Patch, error) {
		mark := strings.Clone(req.Name)
		k.overrun(ctx, mark)
		kept := *req
		k.keep("the documents", mark, func() string {
			return string(kept.Object) + string(kept.OldObject) + string(kept.Options) + asJSON(kept.Metadata)
		})
		k.keep("the request", mark, func() string { return string(req.Object) + asJSON(req.Metadata) })
		return review.Allow(), patch.Patch{{Op: patch.Add, Path: "/new", Value: req.Object}}, nil
	}
}

// TestValuesThatAHandlerKeepsNeverChange calls one hook from 64 goroutines. The handler keeps everything it gets, and
// nothing of that may change later. In the first call of each goroutine, the handler overruns its deadline and still
// uses its documents after the answer.
func TestValuesThatAHandlerKeepsNeverChange(t *testing.T) {
	pods := func(k *keeper) *webhook.Hook {
		return mutating(keepAll(k, func(p *corev1.Pod) { p.Spec.NodeName = p.Name }))
	}
	for name, hookOf := range map[string]func(k *keeper) *webhook.Hook{
		"typed": pods,
		"projection": func(k *keeper) *webhook.Hook {
			return webhook.Mutating(anything, keepAll(k, func(p *podImages) { p.Spec.Containers[0].Image += ":1" }))
		},
		"bytes": func(k *keeper) *webhook.Hook { return webhook.Mutating(anything, keepAll(k, func(*byteFields) {})) },
		"unstructured": func(k *keeper) *webhook.Hook {
			return webhook.Mutating(anything, keepAll(k, func(u *unstructured.Unstructured) { u.Object["added"] = u.GetName() }))
		},
		"raw": func(k *keeper) *webhook.Hook { return webhook.MutatingRaw(anything, keepRaw(k)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{t: t}
				hook := hookOf(k).WithLogger(logr.New(&lastLine{}))
				k.call(func(query, mark string) answer {
					return postHTTP2(t, hook, query, markedCall(mark))
				})
				k.done()
			})
		})
	}
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("over TLS, h2 %t", h2), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{t: t}
				hook := pods(k).WithLogger(logr.New(&lastLine{}))
				e := serveInMemory(t, webhook.Options{}, hook)
				e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
				k.call(func(query, mark string) answer {
					a, err := e.try(t.Context(), hook.Path()+query, markedCall(mark))
					if err != nil {
						t.Error(err)
					}
					return a
				})
				k.done()
				<-time.After(time.Minute) // until both ends of the connections are closed
			})
		})
	}
}

// call makes four calls in each of 64 goroutines, and checks the answers. The first call of each goroutine must time
// out.
func (k *keeper) call(send func(query, mark string) answer) {
	var callers sync.WaitGroup
	for caller := range 64 {
		callers.Go(func() {
			for i := range 4 {
				mark := fmt.Sprintf("mark-%05d%d", caller, i)
				query, code, answered := "?timeout=30s", http.StatusOK, make(chan struct{})
				if i == 0 {
					query, code = "?timeout=1s", http.StatusGatewayTimeout
					k.answered.Store(mark, answered)
				}
				a := send(query, mark)
				close(answered)
				if a.code != code {
					k.t.Errorf("%s: got %d %s", mark, a.code, a.body)
				}
				k.check("the answer", mark, string(a.body))
			}
		})
	}
	callers.Wait()
}

// A lastLine is a log sink that writes nothing. Its method line returns the line that it would write.
type lastLine struct{ keys []any }

func (*lastLine) Init(logr.RuntimeInfo)          {}
func (*lastLine) Enabled(int) bool               { return true }
func (*lastLine) Info(int, string, ...any)       {}
func (*lastLine) Error(error, string, ...any)    {}
func (l *lastLine) WithName(string) logr.LogSink { return l }
func (l *lastLine) WithValues(keys ...any) logr.LogSink {
	return &lastLine{slices.Concat(l.keys, keys)}
}
func (l *lastLine) line(message string) string { return fmt.Sprint(message, l.keys) }
