// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	claimCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databaseclaims.db.acme.io}
spec:
  group: db.acme.io
  scope: Namespaced
  names: {plural: databaseclaims, singular: databaseclaim, kind: DatabaseClaim, listKind: DatabaseClaimList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [engine]
            properties:
              engine: {type: string, enum: [postgres, mysql]}
              size: {type: string}
`
	claimSample = `
apiVersion: db.acme.io/v1
kind: DatabaseClaim
metadata: {name: orders, namespace: shop}
spec: {engine: postgres, size: 20Gi}
`
	finalizer = "db.acme.io/release"
)

func finalizeBroken(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var claim metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.Object.Raw, &claim); err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(claim.Finalizers, finalizer):
		return nil, nil
	case len(claim.Finalizers) == 0:
		return operations([]patchOp{{"add", "/metadata/finalizers", []string{finalizer}}})
	}
	return operations([]patchOp{{"add", "/metadata/finalizers/-", finalizer}})
}

func finalizeCorrect(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var claim metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.Object.Raw, &claim); err != nil {
		return nil, err
	}
	switch {
	case claim.DeletionTimestamp != nil, slices.Contains(claim.Finalizers, finalizer):
		return nil, nil
	case len(claim.Finalizers) == 0:
		return operations([]patchOp{{"add", "/metadata/finalizers", []string{finalizer}}})
	}
	return operations([]patchOp{{"add", "/metadata/finalizers/-", finalizer}})
}

func finalizeProof(p *prover) string {
	claim := p.created(p.object(claimSample))
	set(claim, "2026-01-02T03:04:05Z", "metadata", "deletionTimestamp")
	released := copyOf(claim)
	delete(nested(released, "metadata"), "finalizers")
	out := p.updated(claim, released)
	if list := nested(out, "metadata")["finalizers"]; list != nil {
		return fmt.Sprintf("the controller removes the finalizer of a deleted claim, and the object has again %v: it is never deleted", list)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z09b1-finalizer-while-deleting",
		Summary: "The webhook adds a finalizer in each UPDATE, even while the object is being deleted.",
		Why: "DELETE sets deletionTimestamp. The controller frees the database and sends an UPDATE without the finalizer: the webhook adds it again, as on CREATE. " +
			"The object is never removed, and its namespace stays in Terminating.",
		Webhook: register("finalizers.db.acme.io", "db.acme.io", "v1", "databaseclaims", create, update),
		New:     func() http.Handler { return serve(finalizeBroken) },
		Samples: []string{claimSample},
		CRDs:    []string{claimCRD},
		Proof:   finalizeProof,
	})
	_ = add(hookCase{
		Name:    "Z09c1-finalizer-unless-deleting",
		Summary: "A finalizer is added on each CREATE and UPDATE of an object that is not being deleted.",
		Why:     "A replace by the author's manifest gets the finalizer again, so the database is never leaked. An object with deletionTimestamp is not touched, so its controller can release it.",
		Webhook: register("finalizers.db.acme.io", "db.acme.io", "v1", "databaseclaims", create, update),
		New:     func() http.Handler { return serve(finalizeCorrect) },
		Samples: []string{claimSample},
		CRDs:    []string{claimCRD},
		Proof:   finalizeProof,
	})
)

const fastStatefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: kafka
  namespace: streams
  labels: {storage.acme.io/fast: "true"}
spec:
  serviceName: kafka
  replicas: 3
  selector: {matchLabels: {app: kafka}}
  template:
    metadata: {labels: {app: kafka}}
    spec:
      containers:
      - name: kafka
        image: registry.acme.io/streams/kafka:4.0
        volumeMounts:
        - {name: log, mountPath: /var/lib/kafka}
  volumeClaimTemplates:
  - metadata: {name: log}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 100Gi}}
`

type fastOnCreate struct{}

func (*fastOnCreate) Default(_ context.Context, sts *appsv1.StatefulSet) error {
	if sts.Labels["storage.acme.io/fast"] != "true" {
		return nil
	}
	for i := range sts.Spec.VolumeClaimTemplates {
		if claim := &sts.Spec.VolumeClaimTemplates[i]; claim.Spec.StorageClassName == nil {
			class := "fast-local"
			claim.Spec.StorageClassName = &class
		}
	}
	return nil
}

type fastAlways struct{ decoder admission.Decoder }

func (f *fastAlways) Default(ctx context.Context, sts *appsv1.StatefulSet) error {
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Create {
		return (&fastOnCreate{}).Default(ctx, sts)
	}
	// The templates cannot be changed any more: keep what they have.
	old := &appsv1.StatefulSet{}
	if err := f.decoder.DecodeRaw(req.OldObject, old); err != nil {
		return err
	}
	for i := range sts.Spec.VolumeClaimTemplates {
		claim := &sts.Spec.VolumeClaimTemplates[i]
		at := slices.IndexFunc(old.Spec.VolumeClaimTemplates, func(o corev1.PersistentVolumeClaim) bool { return o.Name == claim.Name })
		if at >= 0 && claim.Spec.StorageClassName == nil {
			claim.Spec.StorageClassName = old.Spec.VolumeClaimTemplates[at].Spec.StorageClassName
		}
	}
	return nil
}

func fastProof(p *prover) string {
	stored := p.created(p.object(fastStatefulSet))
	manifest := normal(p.object(fastStatefulSet))
	set(manifest, 5.0, "spec", "replicas")
	out := p.updated(stored, manifest)
	class := func(sts map[string]any) any {
		return nested(objects(nested(sts, "spec")["volumeClaimTemplates"])[0], "spec")["storageClassName"]
	}
	a, b := class(stored), class(out)
	if a != b {
		return fmt.Sprintf("kubectl replace with 5 replicas is rejected, as volumeClaimTemplates are immutable: storageClassName %v, before %v", b, a)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z09b2-claim-template-on-create",
		Summary: "An immutable field is filled at CREATE, but not at UPDATE.",
		Why: "CREATE sets storageClassName in volumeClaimTemplates. UPDATE by the author's own manifest with other replicas (kubectl replace): the class is missing, the webhook is not called, " +
			"and the API server rejects the update, as the templates are immutable.",
		Webhook: register("fast.storage.acme.io", "apps", "v1", "statefulsets", create),
		New:     func() http.Handler { return admission.WithDefaulter(clientgoscheme.Scheme, &fastOnCreate{}) },
		Samples: []string{fastStatefulSet},
		Proof:   fastProof,
	})
	_ = add(hookCase{
		Name:    "Z09c2-claim-template-from-old",
		Summary: "An immutable field is filled at CREATE, and kept from the old object at UPDATE.",
		Why: "At UPDATE the class is that of the old template of the same name, whether the webhook set it or not, and whatever the labels are now. " +
			"So objects from before the webhook, and replaces by the author's manifest, are accepted.",
		Webhook: register("fast.storage.acme.io", "apps", "v1", "statefulsets", create, update),
		New: func() http.Handler {
			return admission.WithDefaulter(clientgoscheme.Scheme, &fastAlways{admission.NewDecoder(clientgoscheme.Scheme)})
		},
		Samples: []string{fastStatefulSet},
		Proof:   fastProof,
	})
)

const batchJob = `
apiVersion: batch/v1
kind: Job
metadata:
  name: reindex
  namespace: search
  labels: {scheduling.acme.io/class: batch}
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: reindex
        image: registry.acme.io/search/reindex:3
`

func jobPriority(template *corev1.PodTemplateSpec, labels map[string]string) string {
	if labels["scheduling.acme.io/class"] == "batch" && template.Spec.PriorityClassName == "" && template.Spec.Priority == nil && template.Spec.PreemptionPolicy == nil {
		return "batch-low"
	}
	return ""
}

func priorityBroken(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var job batchv1.Job
	if err := json.Unmarshal(req.Object.Raw, &job); err != nil {
		return nil, err
	}
	if class := jobPriority(&job.Spec.Template, job.Labels); class != "" {
		return operations([]patchOp{{"add", "/spec/template/spec/priorityClassName", class}})
	}
	return nil, nil
}

func priorityCorrect(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var job, old batchv1.Job
	if err := json.Unmarshal(req.Object.Raw, &job); err != nil {
		return nil, err
	}
	class := jobPriority(&job.Spec.Template, job.Labels)
	if req.Operation == admissionv1.Update {
		if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
			return nil, err
		}
		class = ""
		if job.Spec.Template.Spec.PriorityClassName == "" {
			class = old.Spec.Template.Spec.PriorityClassName
		}
	}
	if class == "" {
		return nil, nil
	}
	return operations([]patchOp{{"add", "/spec/template/spec/priorityClassName", class}})
}

func priorityProof(p *prover) string {
	job := p.object(batchJob)
	delete(nested(job, "metadata"), "labels")
	job = p.created(job)
	labelled := copyOf(job)
	set(labelled, "batch", "metadata", "labels", "scheduling.acme.io/class")
	out := p.updated(job, labelled)
	a, b := fmt.Sprint(nested(job, "spec", "template")), fmt.Sprint(nested(out, "spec", "template"))
	if a != b {
		return fmt.Sprintf("kubectl label is rejected, as the template is immutable: %s, before %s", b, a)
	}
	// The author's manifest in full.
	stored := p.created(p.object(batchJob))
	out = p.updated(stored, normal(p.object(batchJob)))
	if fmt.Sprint(nested(stored, "spec", "template")) != fmt.Sprint(nested(out, "spec", "template")) {
		return "a replace loses the class"
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z09b3-job-template-on-update",
		Summary: "The immutable template of a Job is changed at UPDATE.",
		Why: "A Job was created without the label (or before the webhook was installed). UPDATE that adds label scheduling.acme.io/class=batch: the webhook adds priorityClassName to the template, " +
			"and the API server rejects the update, as the template is immutable. For a Job from before the webhook, each update fails, also that of the Job controller's finalizers.",
		Webhook: register("priority.scheduling.acme.io", "batch", "v1", "jobs", create, update),
		New:     func() http.Handler { return serve(priorityBroken) },
		Samples: []string{batchJob},
		Proof:   priorityProof,
	})
	_ = add(hookCase{
		Name:    "Z09c3-job-template-from-old",
		Summary: "At UPDATE, the template of a Job keeps the class that it has, and gets no new one.",
		Why:     "At CREATE the class is filled where it is absent. At UPDATE a missing class is copied from the old object, whatever the labels are, because the template is immutable.",
		Webhook: register("priority.scheduling.acme.io", "batch", "v1", "jobs", create, update),
		New:     func() http.Handler { return serve(priorityCorrect) },
		Samples: []string{batchJob},
		Proof:   priorityProof,
	})
)
