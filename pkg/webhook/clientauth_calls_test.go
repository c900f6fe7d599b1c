// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A tally is an observer that counts calls by their outcome, code, uid and body size.
type tally struct {
	mu    sync.Mutex
	calls map[string]int
}

func (o *tally) Begin(ctx context.Context, _ *webhook.Hook, _ *http.Request) (context.Context, func(*webhook.Observation)) {
	return ctx, func(c *webhook.Observation) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.calls[fmt.Sprintf("%s %d, uid %q, %d bytes, failed %t", c.Outcome, c.Code, c.UID, c.BodyBytes, c.Err != nil)]++
	}
}

func TestObserversSeeRefusedCalls(t *testing.T) {
	ca := newSigner(t, "clients")
	auth := &webhook.ClientAuth{CAFile: file(t, ca.pem()), Names: []string{"kube-apiserver"}}
	hook, seen := mutating(label), &tally{calls: map[string]int{}}
	e := serve(t, webhook.Options{ClientAuth: auth, Observers: []webhook.Observer{seen}}, hook)
	e.ask(t, hook, call{}).failed(t)
	e.as(ca.issue(t, subject("other"))).ask(t, hook, call{}).failed(t)
	e.as(ca.issue(t, subject("kube-apiserver"))).ask(t, hook, call{}).allowed(t, call{}, true)
	want := map[string]int{
		`refused 401, uid "", 0 bytes, failed true`:                                       1,
		`refused 403, uid "", 0 bytes, failed true`:                                       1,
		fmt.Sprintf(`mutated 200, uid "u-1", %d bytes, failed false`, len(call{}.body())): 1,
	}
	if fmt.Sprint(seen.calls) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", seen.calls, want)
	}
}

// headers is an observer that records the headers it sees.
type headers struct {
	mu   sync.Mutex
	seen []string
}

func (o *headers) Begin(ctx context.Context, _ *webhook.Hook, r *http.Request) (context.Context, func(*webhook.Observation)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, fmt.Sprintf("%s %q %d %d", r.URL.Path, r.Header.Get("Traceparent"), len(r.Header), len(r.Trailer)))
	return ctx, nil
}

// Observers must not see the headers of unauthenticated clients. Otherwise such clients could add spans to any trace.
func TestObserversSeeNoHeadersOfRefusedCalls(t *testing.T) {
	hook, seen := mutating(label), &headers{}
	e := serve(t, webhook.Options{ClientAuth: &webhook.ClientAuth{TokenFile: file(t, "good-0123456789-xyz")}, Observers: []webhook.Observer{seen}}, hook)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, token := range []string{"bad", "good-0123456789-xyz"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+hook.Path(), bytes.NewReader(call{}.body()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Traceparent": {parent}}
		r.Trailer, r.ContentLength = http.Header{"Later": nil}, -1
		resp, err := e.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if want := []string{hook.Path() + ` "" 0 0`, hook.Path() + ` "` + parent + `" 5 1`}; !slices.Equal(seen.seen, want) {
		t.Errorf("got %q, want %q", seen.seen, want)
	}
}

// While the files change, every call is either admitted or refused with 401. Calls with credentials
// that stay valid are always admitted.
func TestCallsWhileTheFilesChange(t *testing.T) {
	stays, comes := newSigner(t, "stays"), newSigner(t, "comes")
	cas, tokens, hook := file(t, stays.pem()), file(t, "stays-0123456789"), mutating(label)
	e := serve(t, webhook.Options{ClientAuth: &webhook.ClientAuth{CAFile: cas, TokenFile: tokens, ReloadInterval: time.Millisecond}}, hook)
	done := make(chan struct{})
	var callers sync.WaitGroup
	for _, in := range []struct {
		client *endpoint
		stays  bool
	}{
		{e.as(stays.issue(t, subject("a"))), true},
		{e.as(comes.issue(t, subject("b"))), false},
		{e.with("Bearer stays-0123456789"), true},
		{e.with("Bearer comes-0123456789"), false},
	} {
		callers.Go(func() {
			defer in.client.client.CloseIdleConnections()
			for {
				a, err := in.client.try(t.Context(), hook.Path(), call{}.body())
				if err != nil || a.code != http.StatusOK && (in.stays || a.code != http.StatusUnauthorized) {
					t.Errorf("got %d %s, %v", a.code, a.body, err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range 50 {
		replace(t, cas, stays.pem()+comes.pem())
		replace(t, tokens, "comes-0123456789\nstays-0123456789")
		e.with("Bearer comes-0123456789").ask(t, hook, call{})
		replace(t, cas, stays.pem())
		replace(t, tokens, "stays-0123456789")
		e.with("Bearer comes-0123456789").ask(t, hook, call{})
	}
	close(done)
	callers.Wait()
}

// replace replaces a file atomically.
func replace(t *testing.T, path, content string) {
	t.Helper()
	rewrite(t, path+".tmp", content)
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}
