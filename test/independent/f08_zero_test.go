// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const tokenDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: thumbnails, namespace: media}
spec:
  selector:
    matchLabels: {app: thumbnails}
  template:
    metadata:
      labels: {app: thumbnails}
    spec:
      containers:
        - name: thumbnails
          image: registry.northwind.io/media/thumbnails:1.20.0
`

var _ = add(hookCase{
	Name:    "F08b1-token-default-is-spelled-out",
	Summary: "The identity team lets teams switch off the token of the service account by an annotation of the pod template. The webhook writes the answer into automountServiceAccountToken, unless it is set.",
	Why:     "Without the annotation, true is written where nothing was. This overrules a false in the ServiceAccount and blocks any other webhook that fills in false, nor does the annotation help when it is added later.",
	Webhook: notInSystem(register("token.northwind.io", "apps", "v1", "deployments", create, update)),
	Samples: []string{tokenDeployment},
	New: func() http.Handler {
		return serve(func(r *admissionv1.AdmissionRequest) ([]byte, error) {
			var d appsv1.Deployment
			if err := json.Unmarshal(r.Object.Raw, &d); err != nil {
				return nil, err
			}
			if d.Spec.Template.Spec.AutomountServiceAccountToken != nil {
				return nil, nil
			}
			wanted := d.Spec.Template.Annotations["identity.northwind.io/token"] != "none"
			return operations([]patchOp{{Op: "add", Path: "/spec/template/spec/automountServiceAccountToken", Value: wanted}})
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(tokenDeployment))
		// The author adds the annotation and applies.
		annotated := copyOf(live)
		set(annotated, "none", "spec", "template", "metadata", "annotations", "identity.northwind.io/token")
		out := p.updated(live, annotated)
		if reach(out, "spec", "template", "spec", "automountServiceAccountToken") == true {
			return "the webhook's own default, which nobody asked for, keeps the annotation from working"
		}
		return ""
	},
})

const oneAtATime = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: indexer, namespace: search}
spec:
  selector:
    matchLabels: {app: indexer}
`

var _ = add(hookCase{
	Name:    "F08b2-zero-counts-as-unset",
	Summary: "The node team wants each PodDisruptionBudget to say something: the webhook sets maxUnavailable to 1 if neither field has a value.",
	Why:     "An explicit minAvailable: 0 counts as no value, so both fields are set and the API server rejects the object. An explicit maxUnavailable: 0 is overwritten.",
	Webhook: register("budget.northwind.io", "policy", "v1", "poddisruptionbudgets", create, update),
	Samples: []string{oneAtATime},
	New: func() http.Handler {
		given := func(v any) bool { return v != nil && v != float64(0) && v != "" }
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if !given(e.get("spec", "minAvailable")) && !given(e.get("spec", "maxUnavailable")) {
				e.set(1, "spec", "maxUnavailable")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		object := p.object(oneAtATime)
		set(object, 0, "spec", "minAvailable")
		if spec := nested(p.created(object), "spec"); spec["minAvailable"] != nil && spec["maxUnavailable"] != nil {
			return fmt.Sprintf("minAvailable %v and maxUnavailable %v", spec["minAvailable"], spec["maxUnavailable"])
		}
		return ""
	},
})

const reportJob = `
apiVersion: batch/v1
kind: Job
metadata:
  name: report-2026-03
  namespace: finance
  labels: {northwind.io/tidy: "true"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: report
          image: registry.northwind.io/finance/report:2.1.0
`

var _ = add(hookCase{
	Name:    "F08c1-ttl-of-zero-is-a-value",
	Summary: "The platform team wants finished Jobs with a label to go away after a day: the webhook sets ttlSecondsAfterFinished to 86400 if it is absent.",
	Why:     "Absent and 0 are told apart by a pointer, as 0 means at once. The field may be changed in a Job, so the author's manifest gets it at an UPDATE as well.",
	Webhook: onlyLabelled(register("tidy.northwind.io", "batch", "v1", "jobs", create, update), "northwind.io/tidy", "true"),
	Samples: []string{reportJob},
	New: func() http.Handler {
		return runtimeStyle(func(_ context.Context, r admission.Request) admission.Response {
			var job struct {
				Spec *batchv1.JobSpec `json:"spec"`
			}
			if err := json.Unmarshal(r.Object.Raw, &job); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			if job.Spec == nil || job.Spec.TTLSecondsAfterFinished != nil {
				return admission.Allowed("")
			}
			return admission.Patched("", jsonpatch.NewOperation("add", "/spec/ttlSecondsAfterFinished", 86400))
		})
	},
	Proof: func(p *prover) string {
		for _, ttl := range []int{0, 60, 86400} {
			object := p.object(reportJob)
			set(object, ttl, "spec", "ttlSecondsAfterFinished")
			if out := p.created(object); fmt.Sprint(reach(out, "spec", "ttlSecondsAfterFinished")) != fmt.Sprint(ttl) {
				return fmt.Sprint(ttl, " is overwritten")
			}
		}
		live := p.created(p.object(reportJob))
		null := copyOf(live)
		set(null, nil, "spec", "ttlSecondsAfterFinished")
		if !same(p.updated(live, null), live) || !same(p.updated(live, p.object(reportJob)), live) {
			return "null or the author's manifest gives another result"
		}
		return ""
	},
})

const tokenCronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: transcode, namespace: media}
spec:
  schedule: "40 * * * *"
  jobTemplate:
    spec:
      template:
        metadata:
          annotations: {identity.northwind.io/token: none}
        spec:
          restartPolicy: Never
          containers:
            - name: transcode
              image: registry.northwind.io/media/transcode:0.9.0
`

var _ = add(hookCase{
	Name:    "F08c2-token-false-only-on-request",
	Summary: "The identity team lets teams switch off the token of the service account in a CronJob by an annotation of the pod template. Only then does the webhook write automountServiceAccountToken: false, unless the field is set.",
	Why:     "Without the annotation, nothing is written, so the ServiceAccount and other webhooks decide. The false is asked for, and a true of the author stays.",
	Webhook: register("crontoken.northwind.io", "batch", "v1", "cronjobs", create, update),
	Samples: []string{tokenCronJob},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			template := []string{"spec", "jobTemplate", "spec", "template"}
			field := under(template, "spec", "automountServiceAccountToken")
			if str(e.get(under(template, "metadata", "annotations", "identity.northwind.io/token")...)) == "none" && e.get(field...) == nil {
				e.set(false, field...)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		template := []string{"spec", "jobTemplate", "spec", "template"}
		field := under(template, "spec", "automountServiceAccountToken")
		plain := p.object(tokenCronJob)
		set(plain, "default", under(template, "metadata", "annotations", "identity.northwind.io/token")...)
		if out := p.created(plain); !same(out, normal(plain)) {
			return "something is written without a request"
		}
		asked := p.object(tokenCronJob)
		set(asked, true, field...)
		if out := p.created(asked); !same(out, normal(asked)) {
			return "the author's true is overwritten"
		}
		live := p.created(p.object(tokenCronJob))
		stripped := copyOf(live)
		set(stripped, nil, under(template, "metadata")...)
		if out := p.updated(live, stripped); reach(out, field...) != false {
			return "without the annotation, the value is lost"
		}
		if out := p.updated(live, p.object(tokenCronJob)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		return ""
	},
})
