// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const meshPod = `
apiVersion: v1
kind: Pod
metadata:
  name: checkout
  namespace: shop
  labels: {acme.io/tier: gold}
  annotations: {mesh.acme.io/mode: sidecar}
spec:
  containers:
  - name: app
    image: registry.acme.io/shop/checkout:1.8.2
    ports: [{containerPort: 8080}]
`

// meshBroken adds the agent as a sidecar, or only the network setup as an init container.
func meshBroken(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var pod map[string]any
	if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
		return nil, err
	}
	if str(nested(pod, "metadata", "labels")["acme.io/tier"]) != "gold" {
		return nil, nil
	}
	mode := str(nested(pod, "metadata", "annotations")["mesh.acme.io/mode"])
	if mode == "" {
		return nil, nil
	}
	spec := nested(pod, "spec")
	containers := names(spec["containers"])
	switch mode {
	case "sidecar":
		if slices.Contains(containers, "mesh-agent") {
			return nil, nil
		}
		return operations([]patchOp{{"add", "/spec/containers/-", map[string]any{
			"name": "mesh-agent", "image": "registry.acme.io/mesh/agent:3.1",
		}}})
	case "init":
		if slices.Contains(containers, "mesh-setup") {
			return nil, nil
		}
		setup := map[string]any{
			"name": "mesh-setup", "image": "registry.acme.io/mesh/agent:3.1", "args": []any{"setup"},
		}
		if _, ok := spec["initContainers"]; !ok {
			return operations([]patchOp{{"add", "/spec/initContainers", []any{setup}}})
		}
		return operations([]patchOp{{"add", "/spec/initContainers/0", setup}})
	}
	return nil, fmt.Errorf("mesh.acme.io/mode is %q, but must be sidecar or init", mode)
}

func meshCorrect(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var pod map[string]any
	if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
		return nil, err
	}
	if str(nested(pod, "metadata", "labels")["acme.io/tier"]) != "gold" {
		return nil, nil
	}
	spec := nested(pod, "spec")
	containers, inits := names(spec["containers"]), names(spec["initContainers"])
	var list, name string
	var args []any
	switch mode := str(nested(pod, "metadata", "annotations")["mesh.acme.io/mode"]); mode {
	case "":
		return nil, nil
	case "sidecar":
		list, name = "containers", "mesh-agent"
		if slices.Contains(inits, name) {
			return nil, errors.New("the name mesh-agent is reserved for the sidecar of the mesh")
		}
	case "init":
		list, name, args = "initContainers", "mesh-setup", []any{"setup"}
		if slices.Contains(containers, name) {
			return nil, errors.New("the name mesh-setup is reserved for the init container of the mesh")
		}
	default:
		return nil, fmt.Errorf("mesh.acme.io/mode is %q, but must be sidecar or init", mode)
	}
	if slices.Contains(names(spec[list]), name) {
		return nil, nil // ours, or a build of the agent that the team brings itself
	}
	container := map[string]any{"name": name, "image": "registry.acme.io/mesh/agent:3.1"}
	if args != nil {
		container["args"] = args
	}
	if existing, _ := spec[list].([]any); len(existing) == 0 {
		return operations([]patchOp{{"add", "/spec/" + list, []any{container}}})
	}
	return operations([]patchOp{{"add", "/spec/" + list + "/-", container}})
}

func meshProof(p *prover) string {
	pod := p.object(meshPod)
	set(pod, "init", "metadata", "annotations", "mesh.acme.io/mode")
	first := p.created(pod)
	// Another webhook adds a label, so the API server calls again.
	set(first, "x", "metadata", "labels", "other")
	second := p.created(first)
	if n := count(names(nested(second, "spec")["initContainers"]), "mesh-setup"); n != 1 {
		return fmt.Sprintf("%d init containers mesh-setup: the API server rejects the pod", n)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z01b1-mesh-mode-init",
		Summary: "In mode init, the webhook looks for its setup container in the wrong list.",
		Why: "CREATE of a Pod with acme.io/tier=gold and mesh.acme.io/mode=init adds init container mesh-setup. Another webhook " +
			"changes the pod, so the webhook is called again. It looks for mesh-setup among spec.containers, and adds a second init " +
			"container of this name: the API server rejects the pod (duplicate name). Mode sidecar, as in the sample, works.",
		Webhook: register("mesh.acme.io", "", "v1", "pods", create),
		New:     func() http.Handler { return serve(meshBroken) },
		Samples: []string{meshPod},
		Proof:   meshProof,
	})
	_ = add(hookCase{
		Name:    "Z01c1-mesh-mode-both-lists",
		Summary: "Both modes look for their container by name in the right list.",
		Why: "Each mode adds one container, if no container has its name, so a second call adds nothing. A name in the wrong list, which " +
			"the API server would reject after the patch, is denied in every call. CREATE only, as containers of a Pod cannot be added later.",
		Webhook: register("mesh.acme.io", "", "v1", "pods", create),
		New:     func() http.Handler { return serve(meshCorrect) },
		Samples: []string{meshPod},
		Proof:   meshProof,
	})
)

const teamNamespace = `
apiVersion: v1
kind: Namespace
metadata:
  name: team-rocket
  labels: {acme.io/owner: jessie}
`

type namespaceClasses struct{}

func (*namespaceClasses) Default(_ context.Context, ns *corev1.Namespace) error {
	if ns.Labels["acme.io/class"] == "tenant" {
		if _, ok := ns.Labels["pod-security.kubernetes.io/enforce"]; !ok {
			ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
		}
	}
	if strings.HasPrefix(ns.Name, "team-") && ns.Labels["acme.io/owner"] != "" {
		if _, ok := ns.Labels["acme.io/class"]; !ok {
			ns.Labels["acme.io/class"] = "tenant"
		}
	}
	return nil
}

type namespaceDefaults struct{}

func (*namespaceDefaults) Default(_ context.Context, ns *corev1.Namespace) error {
	// The API server generates the name after admission. Its suffix has no dash, so it cannot complete the prefix.
	if !strings.HasPrefix(cmp.Or(ns.Name, ns.GenerateName), "team-") || ns.Labels["acme.io/owner"] == "" {
		return nil
	}
	for key, value := range map[string]string{"acme.io/class": "tenant", "pod-security.kubernetes.io/enforce": "restricted"} {
		if _, ok := ns.Labels[key]; !ok {
			ns.Labels[key] = value // not nil: the owner is there
		}
	}
	return nil
}

func namespaceProof(p *prover) string {
	first := p.created(p.object(teamNamespace))
	second := p.updated(first, first)
	const key = "pod-security.kubernetes.io/enforce"
	if a, b := nested(first, "metadata", "labels")[key], nested(second, "metadata", "labels")[key]; a != b {
		return fmt.Sprintf("%s is %v after CREATE and %v after an update without a change", key, a, b)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z01b2-namespace-class-late",
		Summary: "One rule needs a label that a later rule of the same webhook sets.",
		Why: "CREATE of Namespace team-rocket with label acme.io/owner sets acme.io/class=tenant, but the rule for tenants has already run: " +
			"the namespace has no pod security level, and privileged pods are admitted. Any later update, even without a change, " +
			"sets pod-security.kubernetes.io/enforce=restricted. The result depends on the number of calls.",
		Webhook: register("classes.namespaces.acme.io", "", "v1", "namespaces", create, update),
		New:     func() http.Handler { return admission.WithDefaulter(clientgoscheme.Scheme, &namespaceClasses{}) },
		Samples: []string{teamNamespace},
		Proof:   namespaceProof,
	})
	_ = add(hookCase{
		Name:    "Z01c2-namespace-defaults",
		Summary: "Both labels have the same trigger, which the webhook does not write.",
		Why: "The trigger is the prefix of the name (or of generateName) and the owner, which the webhook never changes; each label is filled if its key is absent. " +
			"The iteration over a Go map has no effect on the result.",
		Webhook: register("classes.namespaces.acme.io", "", "v1", "namespaces", create, update),
		New:     func() http.Handler { return admission.WithDefaulter(clientgoscheme.Scheme, &namespaceDefaults{}) },
		Samples: []string{teamNamespace},
		Proof:   namespaceProof,
	})
)
