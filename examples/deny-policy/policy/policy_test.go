// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/internal/hooktest"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// A ledgerFunc is a function that implements Ledger.
type ledgerFunc func(Entry) error

func (f ledgerFunc) Record(_ context.Context, e Entry) error { return f(e) }

func call(t *testing.T, hook string, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	ledger := ledgerFunc(func(Entry) error { return errors.New("the hook must not record anything") })
	return webhooktest.Decision(t, hooktest.Named(t, Hooks(ledger), hook+".policy.example.com"), req)
}

const (
	goodContainer = `{"name":"shop","image":"shop:v1","resources":{"limits":{"memory":"64Mi"}}}`
	named         = `"labels":{"app.kubernetes.io/name":"shop"}`
)

func podOf(metadata, spec string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"shop",` + metadata + `},"spec":{` + spec + `}}`
}

func TestPods(t *testing.T) {
	podKind := corev1.SchemeGroupVersion.WithKind("Pod")
	good := podOf(named, `"containers":[`+goodContainer+`]`)
	bad := podOf(`"labels":{}`, `"initContainers":[{"name":"setup","image":"setup"}],"containers":[`+goodContainer+`,{"name":"log","image":"log:latest"}]`)
	badFields := []string{
		"metadata.labels[app.kubernetes.io/name]",
		"spec.initContainers[0].image", "spec.initContainers[0].resources.limits[memory]",
		"spec.containers[1].image", "spec.containers[1].resources.limits[memory]",
	}
	rows := []struct {
		name, reason string
		object, old  any
		want         []string // paths of the invalid fields
		warning      string
	}{
		{"good", "it follows the rules", good, nil, nil, ""},
		{"bad", "every fault is named at once", bad, nil, badFields, ""},
		{"limit of the Pod", "it bounds every container", podOf(named, `"resources":{"limits":{"memory":"1Gi"}},"containers":[{"image":"shop:v1"}]`), nil, nil, ""},
		{"deprecated label", "the label only causes a warning", podOf(`"labels":{"app.kubernetes.io/name":"shop","owner":"ann"}`, `"containers":[`+goodContainer+`]`), nil, nil,
			"metadata.labels[owner] is deprecated: use policy.example.com/team"},
		{"warning and denial", "both arrive", podOf(`"labels":{"owner":"ann"}`, `"containers":[`+goodContainer+`]`), nil,
			[]string{"metadata.labels[app.kubernetes.io/name]"}, "metadata.labels[owner] is deprecated: use policy.example.com/team"},
		{"older than the rule", "an update that leaves the faults as they are is allowed", bad, bad, nil, ""},
		{"another fault", "an update that replaces a fault by another at the same place is denied",
			podOf(named, `"containers":[{"name":"shop","image":"shop:latest","resources":{"limits":{"memory":"64Mi"}}}]`),
			podOf(named, `"containers":[{"name":"shop","image":"shop","resources":{"limits":{"memory":"64Mi"}}}]`), []string{"spec.containers[0].image"}, ""},
		{"worse", "an update that adds a fault is denied for that fault",
			podOf(named, `"containers":[{"name":"shop","image":"shop","resources":{"limits":{"memory":"64Mi"}}}]`), good, []string{"spec.containers[0].image"}, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			op := admissionv1.Create
			if row.old != nil {
				op = admissionv1.Update
			}
			resp := call(t, "pods", webhooktest.Request(t, op, podKind, "pods", row.object, row.old))
			if got := hooktest.Fields(resp); resp.Allowed != (row.want == nil) || !slices.Equal(got, row.want) {
				t.Errorf("%s: allowed is %v, fields are\n%q, want\n%q", row.reason, resp.Allowed, got, row.want)
			}
			if !resp.Allowed && (resp.Result.Code != http.StatusUnprocessableEntity || resp.AuditAnnotations["violations"] != strings.Join(row.want, " ")) {
				t.Errorf("%s: code %d, audit annotations %q", row.reason, resp.Result.Code, resp.AuditAnnotations)
			}
			if got := strings.Join(resp.Warnings, "|"); got != row.warning {
				t.Errorf("%s: warnings are %q, want %q", row.reason, got, row.warning)
			}
		})
	}
}

func TestDeployments(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	deploymentOf := func(replicas, labels, spec string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop",` + named + `},"spec":{"replicas":` + replicas +
			`,"template":{"metadata":{` + labels + `},"spec":{` + spec + `}}}}`
	}
	resp := call(t, "deployments", webhooktest.Request(t, admissionv1.Create, kind, "deployments", deploymentOf("2", named, `"containers":[`+goodContainer+`]`), nil))
	if !resp.Allowed || len(resp.Warnings) > 0 {
		t.Errorf("a valid Deployment is denied: %+v", resp)
	}
	resp = call(t, "deployments", webhooktest.Request(t, admissionv1.Create, kind, "deployments", deploymentOf("1", `"labels":{"owner":"ann"}`, `"containers":[{"image":"shop"}]`), nil))
	want := []string{"spec.template.metadata.labels[app.kubernetes.io/name]", "spec.template.spec.containers[0].image", "spec.template.spec.containers[0].resources.limits[memory]"}
	if got := hooktest.Fields(resp); resp.Allowed || !slices.Equal(got, want) {
		t.Errorf("an invalid Deployment is denied for the fields %q, want %q", got, want)
	}
	if len(resp.Warnings) != 2 || !strings.HasPrefix(resp.Warnings[0], "spec.template.metadata.labels[owner]") || !strings.HasPrefix(resp.Warnings[1], "spec.replicas is 1") {
		t.Errorf("an invalid Deployment causes the warnings %q", resp.Warnings)
	}
	if details := resp.Result.Details; details.Group != "apps" || details.Kind != "Deployment" {
		t.Errorf("details are %+v", details)
	}
}

func TestFixedVersion(t *testing.T) {
	rows := []struct {
		image, reason string
		want          bool
	}{
		{"shop:v1", "a tag", true},
		{"shop", "no tag means latest", false},
		{"shop:latest", "the tag latest can change", false},
		{"registry:5000/shop", "that colon belongs to the port", false},
		{"registry:5000/shop:v1", "the last colon begins the tag", true},
		{"shop:latest@sha256:0123", "the digest decides", true},
		{"registry.example.com/team/shop:", "an empty tag", false},
		{"", "nothing", false},
	}
	for _, row := range rows {
		if got := fixedVersion(row.image); got != row.want {
			t.Errorf("%q: got %v: %s", row.image, got, row.reason)
		}
	}
}

func TestDeletion(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	object := func(metadata string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"prices",` + metadata + `}}`
	}
	rows := []struct {
		reason, metadata string
		allowed          bool
	}{
		{"not protected", `"labels":{}`, true},
		{"protected", `"labels":{"policy.example.com/protected":"true"}`, false},
		{"the value of the label does not count", `"labels":{"policy.example.com/protected":""}`, false},
		{"given free", `"labels":{"policy.example.com/protected":"true"},"annotations":{"policy.example.com/allow-deletion":"true"}`, true},
		{"the annotation is not true", `"labels":{"policy.example.com/protected":"true"},"annotations":{"policy.example.com/allow-deletion":"no"}`, false},
	}
	for _, row := range rows {
		resp := call(t, "protected", webhooktest.Request(t, admissionv1.Delete, kind, "configmaps", nil, object(row.metadata)))
		if resp.Allowed != row.allowed {
			t.Errorf("%s: allowed is %v", row.reason, resp.Allowed)
			continue
		}
		if !row.allowed && (resp.Result.Code != http.StatusForbidden || !strings.HasPrefix(resp.Result.Message, `ConfigMap "prices" has the label`)) {
			t.Errorf("%s: denied with %d %s", row.reason, resp.Result.Code, resp.Result.Message)
		}
	}
}

func TestEvictions(t *testing.T) {
	for options, allowed := range map[string]bool{
		``: true,
		`,"deleteOptions":{"gracePeriodSeconds":30}`: true,
		`,"deleteOptions":{"gracePeriodSeconds":0}`:  false,
	} {
		kind := schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}
		req := webhooktest.Request(t, admissionv1.Create, kind, "pods/eviction", `{"metadata":{"name":"shop"}`+options+`}`, nil)
		req.Resource.Group = ""
		if resp := call(t, "evictions", req); resp.Allowed != allowed {
			t.Errorf("%s: allowed is %v", options, resp.Allowed)
		}
	}
}

func TestNamespaces(t *testing.T) {
	const owned = `{"metadata":{"name":"shop","uid":"u-1","labels":{"policy.example.com/team":"payments"}}}`
	rows := []struct {
		name, object string
		dryRun       bool
		ledger       error
		code         int
		records      int
	}{
		{"owned", owned, false, nil, http.StatusOK, 1},
		{"dry run", owned, true, nil, http.StatusOK, 0},
		{"not owned", `{"metadata":{"name":"shop"}}`, false, nil, http.StatusUnprocessableEntity, 0},
		{"not owned, dry run", `{"metadata":{"name":"shop"}}`, true, nil, http.StatusUnprocessableEntity, 0},
		{"ledger that fails", owned, false, errors.New("the disk is full"), http.StatusInternalServerError, 1},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var got []Entry
			hooks := Hooks(ledgerFunc(func(e Entry) error { got = append(got, e); return row.ledger }))
			hook := hooktest.Named(t, hooks, "namespaces.policy.example.com")
			req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", row.object, nil)
			req.DryRun, req.UserInfo = ptr.To(row.dryRun), authenticationv1.UserInfo{Username: "ann"}
			var code int
			if row.ledger != nil { // the call fails, so the failurePolicy applies
				code = int(webhooktest.Failure(t, hook, req).Code)
			} else if resp := webhooktest.Decision(t, hook, req); resp.Allowed {
				code = http.StatusOK
			} else {
				code = int(resp.Result.Code)
			}
			if code != row.code || len(got) != row.records {
				t.Errorf("code %d with %d records, want %d with %d", code, len(got), row.code, row.records)
			}
			if want := (Entry{"u-1", "shop", "payments", "ann"}); len(got) > 0 && got[0] != want {
				t.Errorf("the record is %+v, want %+v", got[0], want)
			}
		})
	}
}

func TestFileLedger(t *testing.T) {
	ledger := &FileLedger{Path: filepath.Join(t.TempDir(), "ledger.jsonl")}
	const n = 20
	done := make(chan error, n)
	for range n {
		go func() {
			done <- ledger.Record(t.Context(), Entry{UID: "u-1", Namespace: "shop", Team: "payments", User: "ann"})
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(ledger.Path)
	if err != nil {
		t.Fatal(err)
	}
	line := `{"uid":"u-1","namespace":"shop","team":"payments","user":"ann"}` + "\n"
	if want := strings.Repeat(line, n); string(got) != want {
		t.Errorf("the ledger is\n%s", got)
	}
	if err := (&FileLedger{Path: t.TempDir()}).Record(t.Context(), Entry{}); err == nil {
		t.Error("Record succeeds although the path of the ledger is a folder")
	}
}
