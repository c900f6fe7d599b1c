// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestPodSecurityInEachMode sends each fixture of k8s.io/pod-security-admission to a real API server, as a Pod and as the
// template of a workload: first without the hooks, and then with the hooks in each mode. In Warn and Shadow, each request
// must have the outcome that it has without the hooks. The warnings, annotations and metrics must be those of Enforce,
// together with the denial that was withheld.
func TestPodSecurityInEachMode(t *testing.T) {
	need.APIServer(t)
	s := startServer(t, controllers())
	requests := fixtureRequests(t, s)
	without := sendAll(t, s, requests)
	enforced := serveInMode(t, s, webhook.Enforce, requests)
	denials := 0
	for i, a := range enforced.answers {
		if without[i].verdict != allowed { // the API server rejects it before it calls the hooks
			continue
		}
		denies := a.verdict == denied && a.code == http.StatusForbidden
		if denies {
			denials++
		}
		if wants := strings.Contains(requests[i].file, "/fail/") && requests[i].resource.Resource == "pods"; denies != wants {
			t.Errorf("%s: whether the request for %s is denied is %v", requests[i].file, requests[i].resource.Resource, denies)
		}
	}
	if got := enforced.counts(t, "admitkit_calls_total", "denied"); denials < 1500 || got != float64(denials) {
		t.Fatalf("%d requests were denied, and the metric is %v", denials, got)
	}
	for _, mode := range []webhook.Mode{webhook.Warn, webhook.Shadow} {
		t.Run(string(mode), func(t *testing.T) {
			served, unequal := serveInMode(t, s, mode, requests), 0
			for i, got := range served.answers {
				want := admitted(mode, without[i], enforced.answers[i])
				if got.text() != want.text() {
					t.Errorf("%s: %s\ngot  %s\nwant %s", requests[i].file, requests[i].resource.Resource, got.text(), want.text())
					if unequal++; unequal == 5 {
						t.Fatal("there are too many differences")
					}
				}
			}
			for series, want := range map[[2]string]float64{
				{"admitkit_withheld_total", `mode="` + string(mode) + `",outcome="denied"`}: float64(denials),
				{"admitkit_withheld_total", ""}:                                             float64(denials),
				{"admitkit_calls_total", "denied"}:                                          0,
				{"admitkit_calls_total", ""}:                                                enforced.counts(t, "admitkit_calls_total", ""),
				{"admitkit_calls_total", `"allowed"`}:                                       enforced.counts(t, "admitkit_calls_total", ""),
			} {
				if got := served.counts(t, series[0], series[1]); got != want {
					t.Errorf("%s{%s} is %v, want %v", series[0], series[1], got, want)
				}
			}
		})
	}
	t.Logf("%d requests in each mode; Enforce denied %d", len(requests), denials)
}

// admitted returns the answer to a request in the mode Warn or Shadow. It follows from the answer without hooks and the
// answer in the mode Enforce.
func admitted(mode webhook.Mode, without, enforced answer) answer {
	want := without
	want.advice = advice{annotations: maps.Clone(enforced.advice.annotations)}
	if mode == webhook.Shadow {
		want.advice.warnings = without.advice.warnings
	} else {
		want.advice.warnings = append(want.advice.warnings, enforced.advice.warnings...)
	}
	if without.verdict != allowed || enforced.verdict == allowed {
		return want
	}
	want.advice.annotate(webhook.AuditMode, string(mode))
	want.advice.annotate(webhook.AuditWouldDeny, enforced.message)
	if mode == webhook.Warn {
		want.advice.warnings = append(want.advice.warnings, "podsecurity.example.com will deny this request once it is enforced: "+enforced.message)
	}
	return want
}

// A fixtureRequest is a dry run that creates a fixture or a workload with it.
type fixtureRequest struct {
	*request
	file string
}

// fixtureRequests returns the requests for all fixtures, and creates a Namespace for each level and version. A Namespace
// has the labels enforce, warn and audit.
func fixtureRequests(t *testing.T, s *server) (list []fixtureRequest) {
	t.Helper()
	for _, level := range []string{"baseline", "restricted"} {
		versions, err := filepath.Glob(filepath.Join(fixtureFolder(), level, "v1.*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range versions {
			version := filepath.Base(folder)
			name := level + "-" + version
			labels := securityLabel("enforce", level, "enforce-version", version, "audit", level, "audit-version", version, "warn", level, "warn-version", version)
			name = strings.ReplaceAll(name, ".", "-") // the name of a Namespace has no dots
			create(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
			files, err := filepath.Glob(filepath.Join(folder, "*", "*.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				pod := &corev1.Pod{}
				if content, err := os.ReadFile(file); err != nil || yaml.UnmarshalStrict(content, pod) != nil {
					t.Fatalf("%s: %v", file, err)
				}
				pod.Namespace = name
				workloads := workloadsOf(pod)
				for _, r := range []*request{onPods(admission.Create, "", pod, nil), workloads[len(list)/2%len(workloads)]} {
					r.dryRun = true
					list = append(list, fixtureRequest{r, filepath.ToSlash(file)})
				}
			}
		}
	}
	if len(list) < 2*4000 {
		t.Fatalf("found only %d fixtures in %s", len(list)/2, fixtureFolder())
	}
	return list
}

// A servedMode has the answers to all requests in one mode, and the metrics of the hooks.
type servedMode struct {
	answers []answer
	metrics http.Handler
}

// serveInMode sends all requests while the hooks are served in this mode.
func serveInMode(t *testing.T, s *server, mode webhook.Mode, requests []fixtureRequest) servedMode {
	t.Helper()
	in := cluster{client: s.typed, factory: informers.NewSharedInformerFactory(s.typed, 0)}
	c := securityControllers()[0]
	registry := prometheus.NewRegistry()
	hooks := c.hooksFor(t, in, "")
	for i := range hooks {
		hooks[i] = hooks[i].WithMode(mode)
	}
	observed, err := metrics.New(registry, metrics.Options{Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	for i := range hooks {
		hooks[i] = hooks[i].WithObserver(observed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in.factory.Start(ctx.Done())
	in.factory.WaitForCacheSync(ctx.Done())
	stop, err := s.Serve(t.Context(), "modes", hooks...)
	if err != nil {
		t.Fatal(err)
	}
	answers := sendAll(t, s, requests)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return servedMode{answers, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}
}

// counts returns the sum of the series of a metric whose labels contain a text.
func (m servedMode) counts(t *testing.T, metric, labels string) (sum float64) {
	t.Helper()
	w := httptest.NewRecorder()
	m.metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(w.Body.String()) {
		var value float64
		name, number, ok := strings.Cut(line, "} ")
		if !ok || !strings.HasPrefix(name, metric+"{") || !strings.Contains(name, labels) {
			continue
		}
		if _, err := fmt.Sscan(number, &value); err != nil {
			t.Fatal(err)
		}
		sum += value
	}
	return sum
}

// senders is the number of clients that send requests at the same time.
const senders = 4

// sendAll sends the requests, and returns the answers in the same order. Each client has its own warnings and audit IDs.
func sendAll(t *testing.T, s *server, requests []fixtureRequest) []answer {
	t.Helper()
	answers := make([]answer, len(requests))
	t.Run("requests", func(t *testing.T) {
		for n := range senders {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				from, to := n*len(requests)/senders, (n+1)*len(requests)/senders
				own := &server{Cluster: s.Cluster, audit: auditLog{file: s.audit.file}}
				config := s.Config()
				config.QPS = -1
				own.observe(config)
				var err error
				if own.dynamic, err = dynamic.NewForConfig(config); err != nil {
					t.Fatal(err)
				}
				p := pass{}
				for _, r := range requests[from:to] {
					send, err := s.prepare(t.Context(), r.request, "")
					if err != nil {
						t.Fatal(err)
					}
					p.requests = append(p.requests, prepared{r.request, "", send})
				}
				copy(answers[from:to], p.answers(t, securityControllers()[0], own))
			})
		}
	})
	return answers
}
