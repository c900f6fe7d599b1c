// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// A reply is how a webhook of TestSearchByURL answers: it changes the Pod, denies it with a message, or sends a warning.
type reply struct {
	acts       bool
	deny, warn string
}

// replying serves a webhook for the creation of Pods. The harness knows its URL only.
func replying(t *testing.T, name string, register func(*admissionregistrationv1.MutatingWebhook), answer func(*corev1.Pod) reply) Subject {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review admissionv1.AdmissionReview
		var pod corev1.Pod
		if json.NewDecoder(req.Body).Decode(&review) != nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
			http.Error(w, "not a review of a Pod", http.StatusBadRequest)
			return
		}
		a := answer(&pod)
		response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: a.deny == ""}
		switch {
		case a.deny != "":
			response.Result = &metav1.Status{Message: a.deny}
		case a.warn != "":
			response.Warnings = []string{a.warn}
		case a.acts && pod.Spec.SchedulerName != "found":
			response.Patch, response.PatchType = []byte(`[{"op":"add","path":"/spec/schedulerName","value":"found"}]`), ptr.To(admissionv1.PatchTypeJSONPatch)
		}
		review.Request, review.Response = nil, response
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	registration := admissionregistrationv1.MutatingWebhook{
		Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: onCreate, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
	}
	if register != nil {
		register(&registration)
	}
	return URL(registration, nil, server.URL)
}

// TestSearchByURL tests webhooks whose source the harness cannot read, without a sample that they change. The search must
// find their triggers.
func TestSearchByURL(t *testing.T) {
	annotated := func(key, value string) func(*corev1.Pod) reply {
		return func(p *corev1.Pod) reply { return reply{acts: p.Annotations[key] == value} }
	}
	for _, c := range []struct {
		title, name string
		register    func(*admissionregistrationv1.MutatingWebhook)
		answer      func(*corev1.Pod) reply
		options     Options
		want        string
	}{
		{title: "its name", name: "sidecar-injector.mesh.example.io", answer: annotated("sidecar.mesh.example.io/inject", "true"),
			want: `metadata.annotations[sidecar.mesh.example.io/inject] is "true"`},
		{title: "its Service", name: "hook.example.io", register: func(w *admissionregistrationv1.MutatingWebhook) {
			w.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "kube-system", Name: "lattice-webhook"}
		}, answer: annotated("lattice.io/enabled", "yes"), want: `metadata.annotations[lattice.io/enabled] is "yes"`},
		{title: "its namespaceSelector", name: "hook.example.io", register: func(w *admissionregistrationv1.MutatingWebhook) {
			w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "grid.example.org/join", Operator: metav1.LabelSelectorOpIn, Values: []string{"blue"}}}}
		}, answer: func(p *corev1.Pod) reply { return reply{acts: p.Labels["grid.example.org/join"] == "blue"} },
			want: `metadata.labels[grid.example.org/join] is "blue"`},
		{title: "a sample that it does not change", name: "hook.example.io", answer: annotated("fleet.example.net/enabled", "true"),
			options: Options{Samples: []runtime.Object{&corev1.Pod{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"fleet.example.net/owner": "shop"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}}},
			want: `metadata.annotations[fleet.example.net/enabled] is "true"`},
		{title: "a denial after another", name: "hook.example.io", answer: func(p *corev1.Pod) reply {
			switch p.Labels["owner"] {
			case "":
				return reply{deny: "missing the owner label"}
			case "red", "blue":
				return reply{acts: true}
			}
			return reply{deny: "owner must be one of red, blue"}
		}, want: `metadata.labels.owner is "red"`},
		{title: "a warning", name: "hook.example.io", answer: func(p *corev1.Pod) reply {
			if p.Annotations["agents.example.org/level"] == "" {
				return reply{warn: `no agent: annotation "agents.example.org/level" is not set`}
			}
			return reply{acts: true}
		}, want: `metadata.annotations[agents.example.org/level] is set`},
		{title: "a usual variable", name: "hook.example.io", answer: func(p *corev1.Pod) reply {
			return reply{acts: slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
				return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "HTTPS_PROXY" })
			})}
		}, want: `spec.containers[name=word-0].env[name=HTTPS_PROXY].name is "HTTPS_PROXY"`},
	} {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			c.options.Objects, c.options.Without = 3, Laws[1:]
			report, err := Run(t.Context(), replying(t, c.name, c.register, c.answer), c.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := conditionsOf(report); !slices.Contains(got, c.want) || report.Changed == 0 {
				t.Errorf("the triggers are %q, want %q:\n%s", got, c.want, text(report))
			}
			if report.Calls > 700 {
				t.Errorf("%d calls", report.Calls)
			}
		})
	}
}
