// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/problem"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// refuse returns a handler that responds with an error as the API server does.
func refuse(code int, reason, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
	}
}

func TestListReadsAllPages(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"shop"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if got := r.Header.Get("User-Agent"); got != "admitkit" {
			t.Errorf("User-Agent %q", got)
		}
		if r.URL.Query().Get("continue") == "" {
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"more"},"items":[`+pod+`]}`, "a")
			return
		}
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[`+pod+`]}`, "b")
	}))
	defer server.Close()
	config, err := (&Flags{Kubeconfig: kubeconfig(t, server.URL, "")}).Config()
	if err != nil {
		t.Fatal(err)
	}
	found, err := List(t.Context(), config, pods)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].String() != "Pod shop/a" || found[1].String() != "Pod shop/b" || found[0].File != "" {
		t.Errorf("got %v", found)
	}
}

func TestListErrors(t *testing.T) {
	rows := []struct {
		name, reason string
		answer       http.HandlerFunc
		tls          bool
		want, hint   string
	}{
		{"forbidden", "the API server's sentence names who may not do what",
			refuse(403, "Forbidden", `pods is forbidden: User "reader" cannot list resource "pods"`), false,
			`you lack a permission in the cluster: pods is forbidden: User "reader" cannot list resource "pods"`, "kubectl auth can-i --list"},
		{"unauthorized", "a token that expired", refuse(401, "Unauthorized", "Unauthorized"), false, "does not accept your credentials: Unauthorized", "kubectl auth whoami"},
		{"failing", "the host is named, there may be many", refuse(500, "InternalError", "etcd is down"), false, "etcd is down", ""},
		{"no such resource", "an old API server", refuse(404, "NotFound", "the server could not find the requested resource"), false, "could not find the requested resource", ""},
		{"nonsense", "a proxy's page in between", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, false, "the cluster at http://", ""},
		{"untrusted", "another CA than that of the kubeconfig", refuse(200, "", ""), true, "is not trusted", "certificate-authority-data"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(row.answer)
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are expected
			if row.tls {
				server.StartTLS() // the system does not trust its CA
			} else {
				server.Start()
			}
			defer server.Close()
			config, err := (&Flags{Kubeconfig: kubeconfig(t, server.URL, "")}).Config()
			if err != nil {
				t.Fatal(err)
			}
			_, err = List(t.Context(), config, pods)
			check(t, err, row.want, row.hint, row.reason)
		})
	}
}

func TestListTrustsTheCAOfTheKubeconfig(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := (&Flags{Kubeconfig: kubeconfig(t, server.URL, file)}).Config()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := List(t.Context(), config, pods); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestListCannotReach(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close() // the port is closed now
	config, err := (&Flags{Kubeconfig: kubeconfig(t, server.URL, "")}).Config()
	if err != nil {
		t.Fatal(err)
	}
	_, err = List(t.Context(), config, pods)
	check(t, err, "cannot reach the cluster at "+server.URL, "kubectl cluster-info", "no process listens")
}

func TestListEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel() // Ctrl-C while the server handles the request
		<-r.Context().Done()
	}))
	defer server.Close()
	if _, err := List(ctx, &rest.Config{Host: server.URL}, pods); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("clusters: {"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := kubeconfig(t, "https://127.0.0.1:1", "")
	rows := []struct {
		name, reason string
		flags        Flags
		want, hint   string
	}{
		{"none", "no kubeconfig exists", Flags{}, "cannot connect to a cluster: there is no kubeconfig", "--kubeconfig FILE"},
		{"missing", "a misspelled name", Flags{Kubeconfig: "nowhere"}, "nowhere: no such file or directory", "--kubeconfig FILE"},
		{"bad", "no YAML", Flags{Kubeconfig: bad}, "cannot use the kubeconfig: ", "kubectl config get-contexts"},
		{"context", "a misspelled context", Flags{Kubeconfig: good, Context: "other"}, `context "other" does not exist`, "kubectl config get-contexts"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := row.flags.Config()
			check(t, err, row.want, row.hint, row.reason)
		})
	}
	if config, err := (&Flags{Kubeconfig: good}).Config(); err != nil || config.Timeout == 0 || config.Host != "https://127.0.0.1:1" {
		t.Errorf("%v, %v", config, err)
	}
}

func TestExplainNothing(t *testing.T) {
	if err := Explain(&rest.Config{}, nil); err != nil {
		t.Error(err)
	}
}

// check checks that the message of an error contains want and does not end with a full stop, and that its hints contain
// hint.
func check(t *testing.T, err error, want, hint, reason string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.HasSuffix(err.Error(), ".") {
		t.Errorf("got %v, want %q: %s", err, want, reason)
	}
	if hints := strings.Join(problem.Hints(err), "\n"); !strings.Contains(hints, hint) {
		t.Errorf("got the hint %q, want %q", hints, hint)
	}
}

func kubeconfig(t *testing.T, server, authority string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: %q, certificate-authority: %q}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
users: [{name: a, user: {token: secret}}]
`, server, authority)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
