// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/reads"
)

// TestReaderAsksTheAPIServer checks that a Namespace which the cache does not have is read from the API server.
func TestReaderAsksTheAPIServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/namespaces/new" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"new"}}`))
	}))
	defer server.Close()
	deps := program.NewDeps(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, logr.Discard())
	reader, err := Reader(deps)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := reader.Get(t.Context(), "", "new"); err != nil || got.Name != "new" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := reader.Get(t.Context(), "", "gone"); !errors.Is(err, reads.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if rules := deps.Rules()[""]; len(rules) != 1 || len(rules[0].Verbs) != 3 {
		t.Errorf("got the permissions %v", rules)
	}
}

func TestReaderNeedsAUsableConfiguration(t *testing.T) {
	deps := program.NewDeps(&rest.Config{Host: "://"}, logr.Discard())
	if _, err := Reader(deps); err == nil {
		t.Error("want an error")
	}
}
