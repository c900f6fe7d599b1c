// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strconv"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

type change = func(*admissionv1.AdmissionRequest, document)

// on returns a change that calls edit only for requests with the operation.
func on(operation admissionv1.Operation, edit change) change {
	return func(r *admissionv1.AdmissionRequest, doc document) {
		if r.Operation == operation {
			edit(r, doc)
		}
	}
}

func podSpecOf(doc document) document { return at(doc, "spec", "template", "spec") }

// ensured returns a change that appends a text to a list, if the list lacks it.
func ensured(text any, path ...string) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		list, in := path[len(path)-1], at(doc, path[:len(path)-1]...)
		if elements, _ := in[list].([]any); !slices.Contains(elements, text) {
			in[list] = append(elements, text)
		}
	}
}

// withAgent adds the agent's container if no container has its name.
func withAgent(_ *admissionv1.AdmissionRequest, doc document) {
	spec := podSpecOf(doc)
	containers, _ := spec["containers"].([]any)
	first, _ := spec["initContainers"].([]any)
	if !slices.ContainsFunc(slices.Concat(containers, first), func(c any) bool { return c.(document)["name"] == "agent" }) {
		spec["containers"] = append(containers, document{"name": "agent", "image": "agent:v1"})
	}
}

func shopDeployment() runtime.Object {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:v1", Args: []string{"--fast"}}}},
			},
		},
	}
}

// A subjectCase is a webhook on Deployments or Gateways, and the law that it breaks, if any.
type subjectCase struct {
	name       string
	custom     bool
	operations []admissionregistrationv1.OperationType
	edit       change
	broken     Law
}

func (c subjectCase) run(t *testing.T) {
	t.Parallel()
	group, version, resource, sample := "apps", "v1", "deployments", shopDeployment()
	if c.custom {
		group, version, resource, sample = "net.example.com", "v1alpha1", "gateways", gateway()
	}
	report, err := Run(t.Context(), editing(group, version, resource, c.operations, c.edit), Options{Samples: []runtime.Object{sample}, Objects: 4})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, report, c.broken)
}

// wants checks that the law fails, or that no law fails if law is empty.
func wants(t *testing.T, report *Report, law Law) {
	t.Helper()
	if law == "" && !report.OK() || law != "" && !slices.ContainsFunc(report.Findings, func(v *Violation) bool {
		return v.Law == law && v.Verdict != Advice
	}) {
		t.Errorf("want a violation of %q:\n%s", law, text(report))
	}
}

// TestManifestAgain tests L6 with a manifest that is applied again. The apply sets the values in the manifest, but not
// defaults, and replaces lists without keys. If a webhook acts on CREATE only and the apply undoes its change, L6 must
// fail.
func TestManifestAgain(t *testing.T) {
	args := func(_ *admissionv1.AdmissionRequest, doc document) {
		forEach(podSpecOf(doc)["containers"], func(c document) {
			list, _ := c["args"].([]any)
			if !slices.Contains(list, any("--agent")) {
				c["args"] = append(list, "--agent")
			}
		})
	}
	set := func(name string, value any) change {
		return func(_ *admissionv1.AdmissionRequest, doc document) { at(doc, "spec")[name] = value }
	}
	for _, c := range []subjectCase{
		{"a default, on CREATE only", false, onBoth, on(admissionv1.Create, set("revisionHistoryLimit", 3)), ""},
		{"what is said, on CREATE only", false, onBoth, on(admissionv1.Create, set("replicas", 5)), L6},
		{"what is said", false, onBoth, set("replicas", 5), ""},
		{"what is said, registered for CREATE only", false, onCreate, set("replicas", 5), ""},
		{"a list that is merged, on CREATE only", false, onBoth, on(admissionv1.Create, withAgent), L6},
		{"a list that is replaced, on CREATE only", false, onBoth, on(admissionv1.Create, args), L6},
		{"a list that is replaced", false, onBoth, args, ""},
		{"a list of a custom resource", true, onBoth, ensured("agent.example.com", "spec", "hosts"), ""},
		{"a list of a custom resource, on CREATE only", true, onBoth, on(admissionv1.Create, ensured("agent.example.com", "spec", "hosts")), L6},
		{"a member of a custom resource, on CREATE only, is a default: advice", true, onBoth, on(admissionv1.Create, set("class", "fast")), ""},
	} {
		t.Run(c.name, c.run)
	}
}

// TestUpdates tests webhooks that act on UPDATE. The harness must find faults that appear only there.
func TestUpdates(t *testing.T) {
	appended := appendedTo("containers", document{"name": "agent", "image": "agent:v1"}, "spec", "template", "spec")
	for _, c := range []subjectCase{
		{"a container twice", false, onBoth, on(admissionv1.Update, appended), L1},
		{"an element twice", true, onBoth, on(admissionv1.Update, appendedTo("hosts", "agent.example.com", "spec")), L1},
		{"fails without an annotation", false, onBoth, on(admissionv1.Update, func(_ *admissionv1.AdmissionRequest, doc document) {
			_ = doc["metadata"].(document)["annotations"].(document)["example.com/must"].(string)
		}), L2},
		{"counts on from the old object", false, onBoth, func(r *admissionv1.AdmissionRequest, doc document) {
			if r.Operation == admissionv1.Update {
				old := decoded(r.OldObject.Raw)
				counted(r, old)
				at(doc, "metadata")["annotations"] = at(old, "metadata")["annotations"]
			}
		}, L1},
		{"marks what is updated", true, onBoth, on(admissionv1.Update, marked), ""},
		{"keeps a value of the old object", true, onBoth, func(r *admissionv1.AdmissionRequest, doc document) {
			if r.Operation == admissionv1.Create {
				marked(r, doc)
			} else if value, ok := at(decoded(r.OldObject.Raw), "metadata", "annotations")["example.com/seen"]; ok {
				at(doc, "metadata", "annotations")["example.com/seen"] = value
			}
		}, ""},
		{"a sidecar in each template", false, onBoth, withAgent, ""},
	} {
		t.Run(c.name, c.run)
	}
}

// TestRequestsOfUpdatesAreApart tests a webhook that decides by the request alone, and treats updates differently. A
// request that is repeated a second later must not be compared with an update of the same object.
func TestRequestsOfUpdatesAreApart(t *testing.T) {
	subject := editing("", "v1", "configmaps", []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}, func(r *admissionv1.AdmissionRequest, doc document) {
		metadata := doc["metadata"].(document)
		annotations, _ := metadata["annotations"].(document)
		if annotations == nil {
			annotations = document{}
		}
		labels, _ := metadata["labels"].(document)
		switch {
		case r.Operation == admissionv1.Create:
			annotations["example.com/created"] = "yes"
		case annotations["example.com/n"] == nil:
			annotations["example.com/n"] = strconv.Itoa(10 + len(annotations) + len(labels))
		}
		metadata["annotations"] = annotations
	})
	report, err := Run(t.Context(), subject, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Findings {
		if v.Law == L3 {
			t.Errorf("the webhook is pure:\n%s", text(report))
		}
	}
}
