// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/test/corpus"
)

// TestAPIServer runs the tests of this package that need an API server. They share one server.
func TestAPIServer(t *testing.T) {
	server := apiservertest.Start(t, nil)
	through := server.Config
	t.Run("finds the same bug as without an API server", func(t *testing.T) {
		c := pattern(t, "P11 the user mounts that path from another volume")
		if report := runCase(t, c, Options{APIServer: through, Objects: 2}); !finds(report, c) {
			t.Errorf("not found:\n%s", text(report))
		}
	})
	t.Run("flags nothing", func(t *testing.T) {
		for _, c := range corpus.Lookalikes() {
			objects := map[string]int{"P10 volume once, mount per container": 2, "P18 patches metadata on UPDATE": 1}[c.Name]
			if objects == 0 {
				continue
			}
			if report := runCase(t, c, Options{APIServer: through, Objects: objects}); len(report.Findings) > 0 || report.Changed == 0 {
				t.Errorf("%s:\n%s", c.Name, text(report))
			}
		}
	})
	t.Run("finds what only the API server rejects", func(t *testing.T) {
		job := &batchv1.CronJob{}
		job.Name, job.Spec.Schedule = "report", "@daily"
		job.Spec.JobTemplate.Spec.Template.Spec = batchPodSpec()
		subject, opts := Handler(scheduleRegistration(), newScheduler), Options{Samples: []runtime.Object{job}, Objects: 3, AllowInconclusive: []Allowance{{Reason: "three objects"}}}
		report, err := Run(t.Context(), subject, opts)
		if err != nil || !report.OK() {
			t.Fatalf("without an API server: %v\n%s", err, text(report))
		}
		opts.APIServer = through
		report, err = Run(t.Context(), subject, opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(report); report.OK() || !strings.Contains(got, "spec.schedule") {
			t.Errorf("no finding for a schedule that the API server rejects:\n%s", got)
		}
	})
	t.Run("takes samples as they are", func(t *testing.T) {
		client, err := kubernetes.NewForConfig(server.Config)
		if err != nil {
			t.Fatal(err)
		}
		job := &batchv1.CronJob{}
		job.Name, job.Namespace, job.Spec.Schedule = "report", "default", "@daily"
		job.Spec.JobTemplate.Spec.Template.Spec = batchPodSpec()
		if _, err := client.BatchV1().CronJobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		report, err := Run(t.Context(), Handler(scheduleRegistration(), newScheduler), Options{Samples: []runtime.Object{job}, Objects: 2, APIServer: through})
		if err != nil || report.Objects == 0 || report.OK() {
			t.Errorf("%v, a sample that exists in another namespace:\n%s", err, text(report))
		}
	})
	t.Run("goes away", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		subject := Handler(scheduleRegistration(), func() http.Handler {
			if calls++; calls == 3 {
				cancel()
			}
			return newScheduler()
		})
		job := &batchv1.CronJob{}
		job.Name, job.Spec.Schedule = "report", "@daily"
		job.Spec.JobTemplate.Spec.Template.Spec = batchPodSpec()
		report, err := Run(ctx, subject, Options{Samples: []runtime.Object{job}, APIServer: through})
		if err != nil || len(report.Incomplete) == 0 || len(report.Findings) > 0 {
			t.Errorf("a cancelled run: %v\n%s", err, text(report))
		}
	})
}

func TestMissingAPIServer(t *testing.T) {
	c := pattern(t, "P01 blind append of a sidecar")
	_, err := Run(t.Context(), Handler(c.Webhook, c.New), Options{APIServer: &rest.Config{Host: "https://127.0.0.1:1"}})
	if failed := (*Error)(nil); !errors.As(err, &failed) || failed.Reason.Code != ReasonAPIServerFailed {
		t.Errorf("the error is %v", err)
	}
}

func scheduleRegistration() admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: "schedule.example.com", AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"batch"}, APIVersions: []string{"v1"}, Resources: []string{"cronjobs"}},
		}},
	}
}

// newScheduler returns a webhook that sets the schedule of a CronJob to an invalid value.
func newScheduler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &kind,
			Patch: []byte(`[{"op":"replace","path":"/spec/schedule","value":"every day at ten"}]`)}
		if strings.Contains(string(review.Request.Object.Raw), "every day at ten") {
			review.Response.Patch, review.Response.PatchType = nil, nil
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	})
}

func batchPodSpec() corev1.PodSpec {
	return corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "report", Image: "report:v1"}}}
}
