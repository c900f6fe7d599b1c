// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/rollout"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// denying returns a hook that denies every Pod.
func denying(name string) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: name, Rules: webhook.Rules(webhook.OnEverything())},
		func(context.Context, *webhook.Request[corev1.Pod]) error { return webhook.Deny("no") })
}

const policy = "images.example.com"

func write(t *testing.T, file, content string) string {
	t.Helper()
	if file == "" {
		file = filepath.Join(t.TempDir(), "modes.yaml")
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// namespaces returns the labels of the Namespaces in the tests.
func namespaces(_ context.Context, name string) (map[string]string, error) {
	switch name {
	case "unknown":
		return nil, errors.New("no answer")
	case "plain":
		return map[string]string{"team": "a"}, nil
	}
	found := map[string]string{}
	for label := range strings.SplitSeq(name, "-") { // such as enforce.v2-warn.latest
		key, value, _ := strings.Cut(label, ".")
		found["policy.example.com/"+key] = value
	}
	return found, nil
}

// modeOf returns the mode in which the hook answers a request, or an empty one if the call fails.
func modeOf(t *testing.T, hook http.Handler, req *admissionv1.AdmissionRequest) webhook.Mode {
	t.Helper()
	decision := webhooktest.Decision(t, hook, req)
	switch {
	case !decision.Allowed:
		return webhook.Enforce
	case len(decision.Warnings) > 0:
		return webhook.Warn
	}
	return webhook.Shadow
}

func request(t *testing.T, namespace, name string, owner *metav1.OwnerReference) *admissionv1.AdmissionRequest {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", pod, nil)
}

func TestModes(t *testing.T) {
	const labelled = "hooks: [{webhook: images.example.com, mode: Shadow, namespaceLabels: policy.example.com, version: v3"
	for _, in := range []struct {
		reason, file, namespace string
		want                    webhook.Mode
	}{
		{"no entry", "hooks: []", "plain", webhook.Enforce},
		{"an entry without a mode", "hooks: [{webhook: images.example.com}]", "plain", webhook.Enforce},
		{"a mode", "hooks: [{webhook: images.example.com, mode: Warn}]", "plain", webhook.Warn},
		{"an operation", "hooks: [{webhook: images.example.com, rules: [{operations: [UPDATE], mode: Shadow}, {operations: [CREATE], mode: Warn}]}]", "plain", webhook.Warn},
		{"a label", "hooks: [{webhook: images.example.com, rules: [{namespaces: {matchLabels: {team: a}}, mode: Warn}]}]", "plain", webhook.Warn},
		{"another label", "hooks: [{webhook: images.example.com, rules: [{namespaces: {matchLabels: {team: b}}, mode: Warn}]}]", "plain", webhook.Enforce},
		{"no namespace", "hooks: [{webhook: images.example.com, rules: [{namespaces: {}, mode: Warn}]}]", "", webhook.Enforce},
		{"none", "hooks: [{webhook: images.example.com, rules: [{percent: 0, mode: Warn}]}]", "plain", webhook.Enforce},
		{"all", "hooks: [{webhook: images.example.com, rules: [{percent: 100, mode: Warn}]}]", "plain", webhook.Warn},
		{"the label of PodSecurity's kind", labelled + "}]", "enforce.v3", webhook.Enforce},
		{"for the latest version", labelled + "}]", "warn.latest", webhook.Warn},
		{"for a later version", labelled + "}]", "enforce.v4", webhook.Enforce},
		{"for an earlier version", labelled + "}]", "enforce.v2", webhook.Shadow},
		{"a label that is no version", labelled + "}]", "enforce.strict", webhook.Enforce},
		{"a warning without a version", labelled + ", rules: [{mode: Enforce}]}]", "warn.yes", webhook.Enforce},
		{"enforced for an earlier version, and a warning for the next", labelled + "}]", "enforce.v2-warn.v3", webhook.Warn},
		{"two labels for this version", labelled + "}]", "audit.latest-warn.v9", webhook.Warn},
		{"audit", labelled + ", rules: [{mode: Enforce}]}]", "audit.v3", webhook.Shadow},
		{"none of the labels", labelled + ", rules: [{mode: Warn}]}]", "other.v3", webhook.Warn},
	} {
		t.Run(in.reason, func(t *testing.T) {
			r, err := rollout.New(write(t, "", in.file), rollout.Options{Namespaces: namespaces}, denying(policy))
			if err != nil {
				t.Fatal(err)
			}
			if got := modeOf(t, r.Hooks()[0], request(t, in.namespace, "a", nil)); got != in.want {
				t.Errorf("got %s, want %s", got, in.want)
			}
		})
	}
}

// TestUndecided requires that a call fails if its mode depends on labels that cannot be read.
func TestUndecided(t *testing.T) {
	r, err := rollout.New(write(t, "", "hooks: [{webhook: images.example.com, namespaceLabels: policy.example.com, version: v3}]"),
		rollout.Options{Namespaces: namespaces}, denying(policy))
	if err != nil {
		t.Fatal(err)
	}
	const want = "cannot read the labels of namespace unknown: no answer"
	if got := webhooktest.Failure(t, r.Hooks()[0], request(t, "unknown", "a", nil)).Message; !strings.HasSuffix(got, want) {
		t.Errorf("got %q", got)
	}
	// A Namespace that is created cannot be read yet, so its own labels count.
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "unknown", Labels: map[string]string{"policy.example.com/warn": "latest"}}}
	req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", created, nil)
	req.Namespace = "unknown"
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: policy, Rules: webhook.Rules(webhook.OnEverything())},
		func(context.Context, *webhook.Request[corev1.Namespace]) error { return webhook.Deny("no") })
	if r, err = rollout.New(write(t, "", "hooks: [{webhook: images.example.com, namespaceLabels: policy.example.com, version: v3}]"),
		rollout.Options{Namespaces: namespaces}, hook); err != nil {
		t.Fatal(err)
	}
	if got := modeOf(t, r.Hooks()[0], req); got != webhook.Warn {
		t.Errorf("a new Namespace: got %s", got)
	}
}

// TestShares requires that a share has about its size, that a larger one includes a smaller one, and that all objects of
// a namespace or controller are on one side.
func TestShares(t *testing.T) {
	enforced := func(percent int, of rollout.Share, req *admissionv1.AdmissionRequest) bool {
		file := fmt.Sprintf("hooks: [{webhook: %s, mode: Shadow, rules: [{percent: %d, of: %s, mode: Enforce}]}]", policy, percent, of)
		r, err := rollout.New(write(t, "", file), rollout.Options{}, denying(policy))
		if err != nil {
			t.Fatal(err)
		}
		return modeOf(t, r.Hooks()[0], req) == webhook.Enforce
	}
	const n = 300
	counts := map[int]int{}
	for i := range n {
		namespace := fmt.Sprint("team-", i)
		before := false
		for _, percent := range []int{1, 10, 50, 100} {
			now := enforced(percent, rollout.Namespaces, request(t, namespace, "a", nil))
			if before && !now {
				t.Errorf("%s leaves the share at %d %%", namespace, percent)
			}
			if before = now; now {
				counts[percent]++
			}
		}
		if enforced(50, rollout.Namespaces, request(t, namespace, "b", nil)) != enforced(50, rollout.Namespaces, request(t, namespace, "a", nil)) {
			t.Errorf("two objects of %s are on different sides", namespace)
		}
	}
	if counts[100] != n || counts[50] < n/3 || counts[50] > 2*n/3 || counts[10] > n/4 || counts[1] > n/20 {
		t.Errorf("of %d namespaces, the shares have %v", n, counts)
	}
	owner := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: ptr.To(true)}
	first := enforced(50, rollout.Owners, request(t, "shop", "web-1", owner))
	for i := range 20 {
		if enforced(50, rollout.Owners, request(t, "shop", fmt.Sprint("web-", i), owner)) != first {
			t.Error("two Pods of one ReplicaSet are on different sides")
		}
	}
}

func TestBadFiles(t *testing.T) {
	for file, want := range map[string]string{
		"hooks: [{webhook: images.example.com, mode: Audit}]": `hooks[0].mode: Unsupported value: "Audit": supported values: "Enforce", "Warn", "Shadow"`,
		"hooks: [{webhook: image.example.com, mode: Warn}]":   `hooks[0].webhook: Unsupported value: "image.example.com": supported values: "images.example.com"`,
		"": "hooks: Required value: to let all hooks enforce, write hooks: []",
		"hooks: []\n---\nhooks: [{webhook: images.example.com, mode: Warn}]": "several documents",
		"hooks: [{mode: Warn}]": "hooks[0].webhook: Required value: name one of the hooks: images.example.com",
		"hooks: [{webhook: images.example.com}, {webhook: images.example.com}]":                                     "hooks[1].webhook: Duplicate value",
		"hooks: [{webhook: images.example.com, moed: Warn}]":                                                        `unknown field "moed"`,
		"hooks: [{webhook: images.example.com, rules: [{percent: 101, mode: Warn}]}]":                               "hooks[0].rules[0].percent: Invalid value: 101: must be from 0 to 100",
		"hooks: [{webhook: images.example.com, rules: [{percent: 5}]}]":                                             `hooks[0].rules[0].mode: Unsupported value: ""`,
		"hooks: [{webhook: images.example.com, rules: [{operations: [create], mode: Warn}]}]":                       `hooks[0].rules[0].operations[0]: Unsupported value: "create"`,
		"hooks: [{webhook: images.example.com, rules: [{of: Owners, mode: Warn}]}]":                                 "hooks[0].rules[0].percent: Required value: of has no effect without percent: set percent, or remove of",
		"hooks: [{webhook: images.example.com, rules: [{percent: 1, of: Pods, mode: Warn}]}]":                       `hooks[0].rules[0].of: Unsupported value: "Pods"`,
		"hooks: [{webhook: images.example.com, namespaceLabels: policy.example.com}]":                               "hooks[0].version: Required value: set the version of the policy, such as v1",
		"hooks: [{webhook: images.example.com, namespaceLabels: Policy, version: v1}]":                              `hooks[0].namespaceLabels: Invalid value: "Policy"`,
		"hooks: [{webhook: images.example.com, version: '3'}]":                                                      `hooks[0].version: Invalid value: "3": must be a version such as v3`,
		"hooks: [{webhook: images.example.com, rules: [{namespaces: {matchExpressions: [{key: a}]}, mode: Warn}]}]": "hooks[0].rules[0].namespaces: Invalid value",
		"hooks: [{webhook: images.example.com, rules: [{namespaces: {matchLabels: {a: b}}, mode: Warn}]}]":          "set rollout.Options.Namespaces",
	} {
		path := write(t, "", file)
		if _, err := rollout.New(path, rollout.Options{}, denying(policy)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", file, err)
		}
	}
	if _, err := rollout.New(filepath.Join(t.TempDir(), "none"), rollout.Options{}, denying(policy)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: got %v", err)
	}
}

// TestChanges requires that a new file is used without a restart, and that a bad one is reported and not used.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		registry := prometheus.NewRegistry()
		file := write(t, "", "hooks: [{webhook: images.example.com, mode: Shadow}]")
		r, err := rollout.New(file, rollout.Options{
			Metrics: registry, Logger: funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}),
		}, denying(policy))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Start(ctx) }()
		expect := func(content string, mode webhook.Mode, valid float64) {
			t.Helper()
			write(t, file, content)
			<-time.After(11 * time.Second) // of a fake clock
			synctest.Wait()
			if got := modeOf(t, r.Hooks()[0], request(t, "shop", "a", nil)); got != mode {
				t.Errorf("%s: got %s", content, got)
			}
			families, err := registry.Gather()
			if err != nil || families[0].GetMetric()[0].GetGauge().GetValue() != valid {
				t.Errorf("%s: the gauge is %v, %v", content, families, err)
			}
		}
		expect("hooks: [{webhook: images.example.com, mode: Warn}]", webhook.Warn, 1)
		expect("hooks: [{webhook: images.example.com, mode: Wran}]", webhook.Warn, 0)
		expect("hooks: [{webhook: images.example.com, mode: Enforce}]", webhook.Enforce, 1)
		if text := strings.Join(logged, "\n"); !strings.Contains(text, `Unsupported value: \"Wran\"`) || !strings.Contains(text, "the last valid ones are used") {
			t.Errorf("logged %s", text)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestMetricsMustBeNew(t *testing.T) {
	registry, file := prometheus.NewRegistry(), write(t, "", "hooks: []")
	if _, err := rollout.New(file, rollout.Options{Metrics: registry}); err != nil {
		t.Fatal(err)
	}
	if _, err := rollout.New(file, rollout.Options{Metrics: registry}); err == nil {
		t.Error("want an error for the second gauge of that name")
	}
}

// This example lets a new policy only record what it would deny, except for one namespace in ten, where it warns.
func Example() {
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: policy, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(context.Context, *webhook.Request[corev1.Pod]) error {
		return webhook.Deny("the image has no digest")
	})
	file := filepath.Join(os.TempDir(), "modes.yaml")
	_ = os.WriteFile(file, []byte(`
hooks:
- webhook: images.example.com
  mode: Shadow
  rules:
  - percent: 10
    mode: Warn
`), 0o600)
	defer func() { _ = os.Remove(file) }()
	modes, err := rollout.New(file, rollout.Options{}, hook)
	if err != nil {
		fmt.Println(err)
		return
	}
	hook = modes.Hooks()[0] // serve it, and run modes.Start(ctx)
	fmt.Println(hook.Name())
	// Output: images.example.com
}
