// SPDX-License-Identifier: Apache-2.0

package eventratelimit

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// event returns a request of the user ann to create an Event in the namespace team-a, with the changes applied.
func event(t *testing.T, changes ...func(*admissionv1.AdmissionRequest, *corev1.Event)) *admissionv1.AdmissionRequest {
	t.Helper()
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "team-a"}}
	meta := &admissionv1.AdmissionRequest{}
	for _, change := range changes {
		change(meta, e)
	}
	req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Event"), "events", e, nil)
	req.UserInfo.Username = "ann" + meta.UserInfo.Username
	req.DryRun = meta.DryRun
	return req
}

func in(namespace string) func(*admissionv1.AdmissionRequest, *corev1.Event) {
	return func(_ *admissionv1.AdmissionRequest, e *corev1.Event) { e.Namespace = namespace }
}

func from(user string) func(*admissionv1.AdmissionRequest, *corev1.Event) {
	return func(req *admissionv1.AdmissionRequest, _ *corev1.Event) { req.UserInfo.Username = user }
}

func with(set func(*corev1.Event)) func(*admissionv1.AdmissionRequest, *corev1.Event) {
	return func(_ *admissionv1.AdmissionRequest, e *corev1.Event) { set(e) }
}

func dry(req *admissionv1.AdmissionRequest, _ *corev1.Event) {
	yes := true
	req.DryRun = &yes
}

// denial calls the hook and returns the message of its denial, or an empty string.
func denial(t *testing.T, hook *webhook.Hook, req *admissionv1.AdmissionRequest) string {
	t.Helper()
	decision := webhooktest.Decision(t, hook, req)
	if decision.Allowed {
		return ""
	}
	if decision.Result.Code != http.StatusTooManyRequests || decision.Result.Reason != metav1.StatusReasonTooManyRequests {
		t.Errorf("got %d %s", decision.Result.Code, decision.Result.Reason)
	}
	return decision.Result.Message
}

func TestLimits(t *testing.T) {
	const reached = "Too many requests: limit reached on type "
	type change = func(*admissionv1.AdmissionRequest, *corev1.Event)
	rows := []struct {
		reason string
		limit  Limit
		other  change // gives the Event another bucket
		key    string
	}{
		{"the server", Limit{Type: Server}, nil, ""},
		{"the namespace", Limit{Type: Namespace}, in("team-b"), "team-a"},
		{"the user", Limit{Type: User}, from("other"), "ann"},
		{"the component", Limit{Type: SourceAndObject}, with(func(e *corev1.Event) { e.Source.Component = "a" }), ""},
		{"the host", Limit{Type: SourceAndObject}, with(func(e *corev1.Event) { e.Source.Host = "a" }), ""},
		{"the kind", Limit{Type: SourceAndObject}, with(func(e *corev1.Event) { e.InvolvedObject.Kind = "a" }), ""},
		{"the namespace of the object", Limit{Type: SourceAndObject}, with(func(e *corev1.Event) { e.InvolvedObject.Namespace = "a" }), ""},
		{"the name", Limit{Type: SourceAndObject}, with(func(e *corev1.Event) { e.InvolvedObject.Name = "a" }), ""},
		{"the uid", Limit{Type: SourceAndObject}, with(func(e *corev1.Event) { e.InvolvedObject.UID = "a" }), ""},
		{"the version", Limit{Type: SourceAndObject}, with(func(e *corev1.Event) { e.InvolvedObject.APIVersion = "a" }), ""},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			now := testingclock.NewFakePassiveClock(time.Unix(0, 0))
			row.limit.QPS, row.limit.Burst = 2, 3
			hook := Hook(Config{Limits: []Limit{row.limit}}, now)
			expect := func(want string, changes ...change) {
				t.Helper()
				if got := denial(t, hook, event(t, changes...)); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			full := reached + string(row.limit.Type) + " for key " + row.key
			for range 3 {
				expect("")
				expect("", dry)
			}
			expect(full)
			expect("", dry)
			if row.other != nil {
				expect("", row.other)
			}
			now.SetTime(now.Now().Add(500 * time.Millisecond)) // for one token
			expect("")
			expect(full)
		})
	}
}

// TestEachLimitCounts checks that an Event takes a token for each limit, even if one of them denies the Event.
func TestEachLimitCounts(t *testing.T) {
	hook := Hook(Config{Limits: []Limit{{Type: Server, QPS: 1, Burst: 1}, {Type: User, QPS: 1, Burst: 2}, {Type: User, QPS: 1, Burst: 2}}},
		testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	for i, want := range []string{
		"",
		"Too many requests: limit reached on type Server for key ",
		"Too many requests: [limit reached on type Server for key , limit reached on type User for key ann]", // equal messages appear once
	} {
		if got := denial(t, hook, event(t)); got != want {
			t.Errorf("%d: got %q, want %q", i, got, want)
		}
	}
}

// TestLongKeys checks that a denial does not repeat a name of megabytes.
func TestLongKeys(t *testing.T) {
	hook := Hook(Config{Limits: []Limit{{Type: SourceAndObject, QPS: 1, Burst: 1}}}, testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	long := with(func(e *corev1.Event) { e.InvolvedObject.Name = strings.Repeat("é", 1<<20) })
	denial(t, hook, event(t, long))
	if got := denial(t, hook, event(t, long)); len(got) > 2*maxKey || !strings.HasSuffix(got, "…") {
		t.Errorf("the denial has %d bytes", len(got))
	}
}

// TestBucketsAreBounded checks that the least recently used bucket is dropped, and that a new one is full.
func TestBucketsAreBounded(t *testing.T) {
	hook := Hook(Config{Limits: []Limit{{Type: Namespace, QPS: 1, Burst: 1, CacheSize: 2}}}, testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	for i, row := range []struct {
		namespace string
		denied    bool
	}{{"a", false}, {"b", false}, {"a", true}, {"c", false}, {"a", true}, {"b", false}, {"c", false}} { // c replaces b, and b replaces c
		if got := denial(t, hook, event(t, in(row.namespace))); (got != "") != row.denied {
			t.Errorf("%d: %s: got %q", i, row.namespace, got)
		}
	}
}

// TestConcurrentEvents checks that concurrent Events never take more tokens than a bucket has.
func TestConcurrentEvents(t *testing.T) {
	hook := Hook(Config{Limits: []Limit{{Type: Namespace, QPS: 1, Burst: 10}}}, testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	var all sync.WaitGroup
	var admitted atomic.Int64
	for i := range 100 {
		req := event(t, in(fmt.Sprint("team-", i%2)))
		all.Go(func() {
			if webhooktest.Decision(t, hook, req).Allowed {
				admitted.Add(1)
			}
		})
	}
	if all.Wait(); admitted.Load() != 20 {
		t.Errorf("%d Events were admitted", admitted.Load())
	}
}

func TestRegistration(t *testing.T) {
	_, configuration, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "test", URL: "https://127.0.0.1"}, Hook(Config{}, clock.RealClock{}))
	if err != nil {
		t.Fatal(err)
	}
	if got := configuration.Webhooks[0]; *got.MatchPolicy != admissionregistrationv1.Exact || *got.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun {
		t.Errorf("got %+v", got)
	}
}

func TestLoad(t *testing.T) {
	const head = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"
	rows := []struct{ reason, content, want string }{
		{"valid", head + "limits:\n- {type: Server, qps: 1, burst: 2, cacheSize: -1}\n- {type: User, qps: 50, burst: 100, cacheSize: 2000}\n", ""},
		{"empty", "", `FILE:1: the file is empty: begin the file with apiVersion: eventratelimit.admission.k8s.io/v1alpha1 and kind: Configuration`},
		{"no limits", head + "limits: []\n", `FILE:3: limits: Required value: must not be empty`},
		{"misspelt", head + "limit: []\n", `FILE:3: limit: unknown field: did you mean limits?`},
		{"wrong type", head + "limits:\n- {type: Server, qps: fast, burst: 1}\n", `FILE:4: limits[0].qps: Invalid value: "fast": must be an integer up to 2147483647`},
		{"unknown type", head + "limits:\n- {type: Pod, qps: 1, burst: 1}\n", `FILE:4: limits[0].type: Unsupported value: "Pod": supported values: "Server", "Namespace", "User", "SourceAndObject"`},
		{"another case", head + "limits:\n- {type: User, qps: 1, burst: 1, cachesize: 1}\n", `FILE:4: limits[0].cachesize: unknown field: did you mean cacheSize?`},
		{"no rate", head + "limits:\n- {type: Server, burst: 1}\n", `FILE:4: limits[0].qps: Invalid value: 0: must be positive`},
		{"no burst", head + "limits:\n- {type: Server, qps: 1}\n", `FILE:4: limits[0].burst: Invalid value: 0: must be positive`},
		{"cache size", head + "limits:\n- {type: User, qps: 1, burst: 1, cacheSize: -1}\n", `FILE:4: limits[0].cacheSize: Invalid value: -1: must not be negative`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "limits.yaml")
			if err := os.WriteFile(file, []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := Load(file)
			want := strings.ReplaceAll(row.want, "FILE", file)
			switch {
			case (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want):
				t.Errorf("got %v, want %q", err, want)
			case err == nil && (len(config.Limits) != 2 || config.Limits[1] != Limit{Type: User, QPS: 50, Burst: 100, CacheSize: 2000}):
				t.Errorf("got %+v", config)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("want an error for a file that does not exist")
	}
}
