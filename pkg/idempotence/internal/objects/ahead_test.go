// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/chain"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A slowEngine answers once mostAtOnce requests are open. It rejects objects with the label odd=true.
type slowEngine struct {
	lock sync.Mutex
	open []chan struct{}
	all  int
}

func (e *slowEngine) Close() error { return nil }

func (e *slowEngine) Admit(ctx context.Context, req chain.Request) (*chain.Result, error) {
	select {
	case <-e.enter():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var object struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(req.Object, &object); err != nil {
		return nil, err
	}
	result := &chain.Result{}
	review, err := json.Marshal(map[string]any{"request": map[string]any{"object": json.RawMessage(req.Object)}})
	result.Calls = []chain.Call{{Request: review}}
	if object.Metadata.Labels["odd"] == "true" {
		result.Rejection = &metav1.Status{Code: http.StatusUnprocessableEntity, Message: object.Metadata.Name + " is odd"}
	}
	return result, err
}

// enter returns a channel that is closed when this request must be answered.
func (e *slowEngine) enter() chan struct{} {
	e.lock.Lock()
	defer e.lock.Unlock()
	answer := make(chan struct{})
	if e.all++; e.all > 2*mostAtOnce { // a request of TakeIn
		close(answer)
		return answer
	}
	if e.open = append(e.open, answer); len(e.open) == mostAtOnce {
		for _, other := range e.open {
			close(other)
		}
		e.open = nil
	}
	return answer
}

// TestAhead checks that Ahead sends several requests at the same time, that each object gets its own answer, and that
// TakeIn sends no request for an object that Ahead asked about.
func TestAhead(t *testing.T) {
	k := KindOf(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	engine := &slowEngine{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k.Server = &RealServer{Ctx: ctx, Engine: engine, Kind: k, Over: func() bool { return false }, Fail: func(err error) { t.Error(err) }, Limit: func(string) {}}
	configMap := func(i int) any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": fmt.Sprint("c", i), "labels": map[string]any{"odd": fmt.Sprint(i%2 == 1)},
		}}
	}
	const all = 2 * mostAtOnce
	var docs []any
	for i := range all {
		docs = append(docs, configMap(i), configMap(i)) // equal objects need one request
	}
	k.Ahead(docs)
	if engine.all != all || len(k.Server.early) != all {
		t.Fatalf("%d requests, %d answers", engine.all, len(k.Server.early))
	}
	for i := range all {
		o, err := k.TakeIn(tree.Encode(k.AsSent(configMap(i), false)))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		if i%2 == 1 {
			want = []string{fmt.Sprintf("c%d is odd", i)}
		}
		if got := k.Problems(o); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("c%d: %q, want %q", i, got, want)
		}
	}
	if engine.all != all || len(k.Server.early) != 0 {
		t.Errorf("%d requests, %d answers unused", engine.all, len(k.Server.early))
	}
	k.Ahead(docs) // all are known
	if _, err := k.TakeIn(tree.Encode(k.AsSent(configMap(all), false))); err != nil || engine.all != all+1 {
		t.Errorf("%d requests, %v", engine.all, err)
	}
}
