// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const dbPod = `
apiVersion: v1
kind: Pod
metadata:
  generateName: invoices-
  namespace: billing
  annotations:
    db.acme.io/secret: invoices-dsn
    db.acme.io/container: app
spec:
  containers:
  - name: app
    image: registry.acme.io/billing/invoices:31
`

func dsnVariable(secret string) corev1.EnvVar {
	return corev1.EnvVar{Name: "DB_DSN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "dsn",
	}}}
}

func dsnFirst(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
		return nil, err
	}
	secret := pod.Annotations["db.acme.io/secret"]
	if secret == "" {
		return nil, nil
	}
	if len(validation.IsDNS1123Subdomain(secret)) > 0 {
		return nil, fmt.Errorf("db.acme.io/secret: %q is not a valid name of a Secret", secret)
	}
	main := pod.Spec.Containers[0]
	for _, e := range main.Env {
		if e.Name == "DB_DSN" {
			return nil, nil
		}
	}
	if len(main.Env) == 0 {
		return operations([]patchOp{{"add", "/spec/containers/0/env", []corev1.EnvVar{dsnVariable(secret)}}})
	}
	return operations([]patchOp{{"add", "/spec/containers/0/env/-", dsnVariable(secret)}})
}

type dsnNamed struct{}

func (*dsnNamed) Default(_ context.Context, pod *corev1.Pod) error {
	secret, name := pod.Annotations["db.acme.io/secret"], pod.Annotations["db.acme.io/container"]
	if secret == "" || name == "" {
		return nil
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return nil // may not refer to secrets
	}
	if len(validation.IsDNS1123Subdomain(secret)) > 0 {
		return fmt.Errorf("db.acme.io/secret: %q is not a valid name of a Secret", secret)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if c := &list[i]; c.Name == name && !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "DB_DSN" }) {
				c.Env = append(c.Env, dsnVariable(secret))
			}
		}
	}
	return nil
}

func dsnProof(p *prover) string {
	pod := p.created(p.object(dbPod))
	spec := nested(pod, "spec")
	spec["containers"] = append([]any{map[string]any{"name": "proxy", "image": "registry.acme.io/mesh/proxy:1"}}, spec["containers"].([]any)...)
	pod = p.created(pod)
	if env := names(objects(nested(pod, "spec")["containers"])[0]["env"]); slices.Contains(env, "DB_DSN") {
		return "the proxy that another webhook put first gets the password of the database"
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z06b1-dsn-first-container",
		Summary: "The webhook assumes that the first container is the application.",
		Why: "CREATE sets DB_DSN in container app. A mesh's webhook inserts its proxy as the first container, so the webhook is called again and sets DB_DSN in the proxy too: " +
			"it gets the password of the database. If the mesh's webhook runs first, only the proxy gets it and the application fails.",
		Webhook: register("dsn.db.acme.io", "", "v1", "pods", create),
		New:     func() http.Handler { return serve(dsnFirst) },
		Samples: []string{dbPod},
		Proof:   dsnProof,
	})
	_ = add(hookCase{
		Name:    "Z06c1-dsn-named-container",
		Summary: "An annotation names the container that gets the variable, in either list.",
		Why: "The container is found by its name, which is unique in the Pod, wherever others move it. A variable that is there is left as it is. " +
			"If no container has the name, nothing is changed, and a later call may find it.",
		Webhook: register("dsn.db.acme.io", "", "v1", "pods", create),
		New:     func() http.Handler { return admission.WithDefaulter(clientgoscheme.Scheme, &dsnNamed{}) },
		Samples: []string{dbPod},
		Proof:   dsnProof,
	})
)

const (
	pipelineCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pipelines.ci.acme.io}
spec:
  group: ci.acme.io
  scope: Namespaced
  names: {plural: pipelines, singular: pipeline, kind: Pipeline, listKind: PipelineList}
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
            required: [steps]
            properties:
              serviceAccount: {type: string, maxLength: 63}
              steps:
                type: array
                minItems: 1
                maxItems: 64
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name, image]
                  properties:
                    name: {type: string, minLength: 1, maxLength: 63}
                    image: {type: string, minLength: 1}
                    script: {type: string}
                    when: {type: string, enum: [success, failure, always]}
`
	pipelineSample = `
apiVersion: ci.acme.io/v1
kind: Pipeline
metadata: {name: build, namespace: ci}
spec:
  steps:
  - {name: checkout, image: registry.acme.io/ci/git:2}
  - {name: compile, image: "registry.acme.io/ci/go:1.26", script: go build ./...}
`
)

var cleanupStep = map[string]any{"name": "cleanup", "image": "registry.acme.io/ci/cleanup:1", "when": "always"}

func cleanupLast(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var pipeline map[string]any
	if err := json.Unmarshal(req.Object.Raw, &pipeline); err != nil {
		return nil, err
	}
	steps := names(nested(pipeline, "spec")["steps"])
	if len(steps) == 0 || steps[len(steps)-1] == "cleanup" {
		return nil, nil
	}
	return operations([]patchOp{{"add", "/spec/steps/-", maps.Clone(cleanupStep)}})
}

func cleanupAnywhere(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var pipeline map[string]any
	if err := json.Unmarshal(req.Object.Raw, &pipeline); err != nil {
		return nil, err
	}
	steps := names(nested(pipeline, "spec")["steps"])
	if len(steps) == 0 || slices.Contains(steps, "cleanup") {
		return nil, nil
	}
	return operations([]patchOp{{"add", "/spec/steps/-", maps.Clone(cleanupStep)}})
}

func cleanupProof(p *prover) string {
	pipeline := p.created(p.object(pipelineSample))
	edited := copyOf(pipeline)
	spec := nested(edited, "spec")
	spec["steps"] = append(spec["steps"].([]any), map[string]any{"name": "deploy", "image": "registry.acme.io/ci/deploy:1"})
	pipeline = p.updated(pipeline, edited)
	if steps := names(nested(pipeline, "spec")["steps"]); count(steps, "cleanup") != 1 {
		return fmt.Sprintf("the API server rejects the update, as names of steps are unique: %q", steps)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z06b2-pipeline-cleanup-last",
		Summary: "Only the last step is checked before the clean-up step is appended.",
		Why: "CREATE appends step cleanup. A user adds step deploy at the end: the last step is not cleanup, so a second one is appended. Names are the keys of the list, " +
			"so the API server rejects the user's update, and each further one.",
		Webhook: register("cleanup.ci.acme.io", "ci.acme.io", "v1", "pipelines", create, update),
		New:     func() http.Handler { return serve(cleanupLast) },
		Samples: []string{pipelineSample},
		CRDs:    []string{pipelineCRD},
		Proof:   cleanupProof,
	})
	_ = add(hookCase{
		Name:    "Z06c2-pipeline-cleanup-anywhere",
		Summary: "All steps are checked before the clean-up step is appended.",
		Why:     "The step is found by its key in the list, wherever it is. It runs with when=always after all others, so its position does not matter. A step cleanup of the user is kept.",
		Webhook: register("cleanup.ci.acme.io", "ci.acme.io", "v1", "pipelines", create, update),
		New:     func() http.Handler { return serve(cleanupAnywhere) },
		Samples: []string{pipelineSample},
		CRDs:    []string{pipelineCRD},
		Proof:   cleanupProof,
	})
)
