// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/pod-security-admission/admission"
	"k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/examples/internal/hooktest"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

const configuration = `
apiVersion: pod-security.admission.config.k8s.io/v1
kind: PodSecurityConfiguration
defaults: {audit: baseline, audit-version: v1.30}
exemptions:
  usernames: [kubelet]
  namespaces: [exempt]
  runtimeClasses: [sandbox]
`

// podLister lists these Pods in every namespace. An empty podLister fails.
type podLister []*corev1.Pod

func (l podLister) ListPods(context.Context, string) ([]*corev1.Pod, error) {
	if len(l) == 0 {
		return nil, errors.New("the API server is down")
	}
	return l, nil
}

// hook returns the hook with this name, for a cluster with several Namespaces. For namespace, the labels are pairs of a
// key, without the prefix pod-security.kubernetes.io/, and a value.
func hook(t *testing.T, name string, pods ...*corev1.Pod) *webhook.Hook {
	t.Helper()
	config, err := Load(write(t, configuration))
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := Hooks(gallerytest.NamespaceReader(
		namespace("team-a", "enforce", "baseline"), namespace("strict", "enforce", "restricted", "warn", "privileged"),
		namespace("warned", "warn", "baseline"), namespace("mistaken", "enforce", "some"), namespace("plain"), namespace("exempt", "enforce", "restricted"),
		namespace("free", "audit", "privileged"),
	), podLister(pods), config)
	if err != nil {
		t.Fatal(err)
	}
	return hooktest.Named(t, hooks, name)
}

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "podsecurity.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func namespace(name string, pairs ...string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		ns.Labels[api.AuditAnnotationPrefix+pairs[i]] = pairs[i+1]
	}
	return ns
}

func in(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

func onHost(p *corev1.Pod) { p.Spec.HostNetwork = true }

func sandboxed(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To("sandbox") }

// advice contains the warnings and the audit annotations of a decision.
type advice struct {
	warnings string
	audit    map[string]string
}

func (a advice) check(t *testing.T, decision *admissionv1.AdmissionResponse) {
	t.Helper()
	if got := strings.Join(decision.Warnings, " "); got != a.warnings {
		t.Errorf("got the warnings %q, want %q", got, a.warnings)
	}
	if !maps.Equal(decision.AuditAnnotations, a.audit) {
		t.Errorf("got the annotations %v, want %v", decision.AuditAnnotations, a.audit)
	}
}

const (
	violation = "host namespaces (hostNetwork=true)"
	denial    = `pods "shop" is forbidden: violates PodSecurity "baseline:latest": ` + violation
	audited   = `would violate PodSecurity "baseline:v1.30": ` + violation
	warned    = `would violate PodSecurity "baseline:latest": ` + violation
)

func TestPods(t *testing.T) {
	t.Parallel()
	rows := []struct {
		reason   string
		pod, old *corev1.Pod
		denial   string
		advice   advice
	}{
		{"allowed", gallerytest.Pod(), nil, "", advice{"", map[string]string{"enforce-policy": "baseline:latest"}}},
		{"denied", gallerytest.Pod(onHost), nil, denial, advice{"", map[string]string{"enforce-policy": "baseline:latest", "audit-violations": audited}}},
		{"warned", gallerytest.Pod(onHost, in("warned")), nil, "", advice{warned, map[string]string{"enforce-policy": "privileged:latest", "audit-violations": audited}}},
		{"audited", gallerytest.Pod(onHost, in("plain")), nil, "", advice{"", map[string]string{"enforce-policy": "privileged:latest", "audit-violations": audited}}},
		{"privileged", gallerytest.Pod(onHost, in("free")), nil, "", advice{"", map[string]string{"enforce-policy": "privileged:latest"}}},
		{"exempt namespace", gallerytest.Pod(onHost, in("exempt")), nil, "", advice{"", map[string]string{"exempt": "namespace"}}},
		{"exempt runtime class", gallerytest.Pod(onHost, sandboxed), nil, "", advice{"", map[string]string{"exempt": "runtimeClass"}}},
		{"same images", gallerytest.Pod(onHost), gallerytest.Pod(onHost), "", advice{}},
		{"a new image", gallerytest.Pod(onHost), gallerytest.Pod(onHost, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "old" }), denial,
			advice{"", map[string]string{"enforce-policy": "baseline:latest", "audit-violations": audited}}},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			decision, _ := gallerytest.Call(t, hook(t, "podsecurity.example.com"), row.pod, row.old)
			gallerytest.Denied(t, decision, row.denial)
			row.advice.check(t, decision)
		})
	}
}

// TestInvalidLabel checks that the strictest level is enforced if the label is not valid.
func TestInvalidLabel(t *testing.T) {
	t.Parallel()
	decision, _ := gallerytest.Call(t, hook(t, "podsecurity.example.com"), gallerytest.Pod(in("mistaken")), nil)
	if decision.Allowed || decision.AuditAnnotations["enforce-policy"] != "restricted:latest" || !strings.HasPrefix(decision.AuditAnnotations["error"], "Failed to parse policy: ") {
		t.Errorf("got %v %v", decision.Allowed, decision.AuditAnnotations)
	}
}

func TestExemptUser(t *testing.T) {
	t.Parallel()
	req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", gallerytest.Pod(onHost), nil)
	req.UserInfo.Username = "kubelet"
	decision := webhooktest.Decision(t, hook(t, "podsecurity.example.com"), req)
	gallerytest.Denied(t, decision, "")
	advice{"", map[string]string{"exempt": "user"}}.check(t, decision)
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	rows := []struct {
		namespace string
		advice    advice
	}{
		{"team-a", advice{warned, map[string]string{"audit-violations": audited}}},
		{"plain", advice{"", map[string]string{"audit-violations": audited}}},
		{"free", advice{}},
		{"exempt", advice{"", map[string]string{"exempt": "namespace"}}},
		{"gone", advice{"", map[string]string{"error": `failed to lookup namespace "gone": namespaces "gone" not found`}}},
	}
	for _, row := range rows {
		t.Run(row.namespace, func(t *testing.T) {
			t.Parallel()
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: row.namespace},
				Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: gallerytest.Pod(onHost).Spec}},
			}
			decision, _ := gallerytest.On(t, hook(t, "workloads.podsecurity.example.com"), admissionv1.Create,
				appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", deployment, nil)
			gallerytest.Denied(t, decision, "")
			row.advice.check(t, decision)
		})
	}
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

func TestNamespaces(t *testing.T) {
	t.Parallel()
	existing := []*corev1.Pod{gallerytest.Pod(onHost), gallerytest.Pod(onHost, func(p *corev1.Pod) { p.Name = "cart" }), gallerytest.Pod(onHost, sandboxed), gallerytest.Pod()}
	relabelled := func(pods ...*corev1.Pod) *admissionv1.AdmissionResponse {
		decision, _ := gallerytest.On(t, hook(t, "podsecurity.example.com", pods...), admissionv1.Update, namespaceKind, "namespaces",
			namespace("team-b", "enforce", "baseline"), namespace("team-b"))
		gallerytest.Denied(t, decision, "")
		return decision
	}
	advice{warnings: `existing pods in namespace "team-b" violate the new PodSecurity enforce level "baseline:latest" cart (and 1 other pod): host namespaces`}.check(t, relabelled(existing...))
	advice{warnings: "failed to list pods while checking new PodSecurity enforce level"}.check(t, relabelled())

	created, _ := gallerytest.On(t, hook(t, "podsecurity.example.com"), admissionv1.Create, namespaceKind, "namespaces", namespace("team-b", "enforce", "some"), nil)
	if created.Allowed || created.Result.Code != http.StatusUnprocessableEntity ||
		!slices.Equal(hooktest.Fields(created), []string{"metadata.labels[" + api.EnforceLevelLabel + "]"}) {
		t.Errorf("got %v %v", created.Allowed, created.Result)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	pods := hook(t, "podsecurity.example.com")
	got := gallerytest.Fails(t, pods, gallerytest.Pod(in("gone")), nil)
	if want := `failed to lookup namespace "gone": namespaces "gone" not found`; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for kind, object := range map[schema.GroupVersionKind]any{namespaceKind: namespace("team-b"), corev1.SchemeGroupVersion.WithKind("Pod"): gallerytest.Pod()} {
		req := webhooktest.Request(t, admissionv1.Update, kind, strings.ToLower(kind.Kind)+"s", object, object)
		req.OldObject.Raw = nil
		if got := webhooktest.Failure(t, pods, req).Message; !strings.Contains(got, "failed to decode") {
			t.Errorf("%s: got %q", kind.Kind, got)
		}
	}
}

func TestHooksNeedAValidConfiguration(t *testing.T) {
	t.Parallel()
	config, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		want   string
		pods   admission.PodLister
		config *Config
	}{
		{"configuration required", podLister{}, nil},
		{"enforce: required", podLister{}, &Config{}},
		{"PodLister required", nil, config},
	}
	for _, row := range rows {
		if _, err := Hooks(gallerytest.NamespaceReader(), row.pods, row.config); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %s", err, row.want)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n"
	rows := []struct{ reason, content, want string }{
		{"valid", head + "defaults: {enforce: baseline}\n", ""},
		{"older", "apiVersion: pod-security.admission.config.k8s.io/v1beta1\nkind: PodSecurityConfiguration\ndefaults: {enforce: baseline}\n", ""},
		{"no version", "kind: PodSecurityConfiguration\n", "FILE:1: apiVersion: Required value: begin the file with apiVersion: pod-security.admission.config.k8s.io/v1 and kind: PodSecurityConfiguration"},
		{"empty", "# nothing\n", "FILE:1: the file is empty: begin the file with apiVersion: pod-security.admission.config.k8s.io/v1 and kind: PodSecurityConfiguration"},
		{"another version", strings.Replace(head, "/v1", "/v3", 1), `FILE:1: apiVersion: Unsupported value: "pod-security.admission.config.k8s.io/v3": supported values: "pod-security.admission.config.k8s.io/v1", `},
		{"a file for the API server", "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: []\n", `FILE:2: kind: Unsupported value: "AdmissionConfiguration": this file is for --admission-control-config-file`},
		{"another kind", strings.Replace(head, "PodSecurityConfiguration", "Other", 1), `FILE:2: kind: Unsupported value: "Other": supported values: "PodSecurityConfiguration"`},
		{"misspelt", head + "defaults: {enforced: baseline}\n", `FILE:3: defaults.enforced: unknown field: did you mean enforce?`},
		{"wrong type", head + "exemptions: {namespaces: a}\n", `FILE:3: exemptions.namespaces: must be a list, not "a"`},
		{"unknown level", head + "defaults: {enforce: some}\n", `FILE:3: defaults.enforce: Invalid value: "some"`},
		{"unknown version", head + "defaults: {warn-version: 1.30}\n", `FILE:3: defaults.warn-version: Invalid value: 1.30: must be a string: write "1.30"`},
		{"twice", head + "exemptions: {usernames: [ann, ann]}\n", `FILE:3: exemptions.usernames[1]: Duplicate value: "ann"`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			file := write(t, row.content)
			config, err := Load(file)
			want := strings.ReplaceAll(row.want, "FILE", file)
			switch {
			case (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want):
				t.Errorf("got %v, want %q", err, want)
			case err == nil && (config.Defaults.Enforce != "baseline" || config.Defaults.EnforceVersion != "latest" || config.Defaults.Warn != "privileged"):
				t.Errorf("got %+v", config.Defaults)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("want an error for a file that does not exist")
	}
}
