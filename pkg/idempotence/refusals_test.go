// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestExceptionsForProblems tests a webhook that sets an invalid imagePullPolicy. An exception for that field must also
// cover the API server's error about it.
func TestExceptionsForProblems(t *testing.T) {
	edit := func(_ *admissionv1.AdmissionRequest, doc document) {
		at(doc, "spec")["containers"].([]any)[0].(document)["imagePullPolicy"] = "Sometimes"
	}
	for path, broken := range map[string]Law{
		"spec.containers.imagePullPolicy":    "",
		"spec.containers[*].imagePullPolicy": "",
		"spec.containers":                    "",
		"spec.containers.image":              L1,
		"spec.containers[name=none]":         L1,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), editing("", "v1", "pods", onCreate, edit), Options{Objects: 4, Exceptions: []Exception{{Path: path, Reason: "for another"}}})
			if err != nil {
				t.Fatal(err)
			}
			wants(t, report, broken)
		})
	}
}

// TestExceptionsForProblemsOfUpdates tests a webhook that removes the first of two tolerations, which no update may do.
// An exception for the tolerations must also cover the API server's error in an update of an annotation.
func TestExceptionsForProblemsOfUpdates(t *testing.T) {
	edit := func(r *admissionv1.AdmissionRequest, doc document) {
		if list, _ := at(doc, "spec")["tolerations"].([]any); len(list) > 1 {
			at(doc, "spec")["tolerations"] = list[1:]
		} else if r.Operation == admissionv1.Create {
			at(doc, "spec")["priorityClassName"] = "high"
		}
	}
	sample := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "app", Image: "shop:v1"}},
		Tolerations: []corev1.Toleration{{Key: "gpu"}, {Operator: corev1.TolerationOpExists}},
	}}
	without := slices.DeleteFunc(slices.Clone(Laws), func(l Law) bool { return l == L6 })
	for path, broken := range map[string]Law{"spec.tolerations": "", "spec.nodeSelector": L6} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), editing("", "v1", "pods", onBoth, edit), Options{
				Objects: 4, Without: without, Samples: []runtime.Object{sample}, Exceptions: []Exception{{Path: path, Reason: "for another"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			wants(t, report, broken)
		})
	}
}

// A patch without effect is advice, and is reported once. Exceptions cover it only if they cover each path in the patch. With the Kubernetes libraries before 0.34,
// controller-runtime sends such patches, because the libraries encode an unset creationTimestamp as null.
func TestExceptionsForPatchesThatChangeNothing(t *testing.T) {
	respond := func(r *admissionv1.AdmissionRequest) []operation {
		doc := decoded(r.Object.Raw)
		patch := []operation{{"add", "/metadata/creationTimestamp", nil}}
		if _, ok := at(doc, "spec", "template")["metadata"]; ok {
			patch = append(patch, operation{"add", "/spec/template/metadata/creationTimestamp", nil})
		}
		if at(doc, "spec")["minReadySeconds"] == nil {
			patch = append(patch, operation{"add", "/spec/minReadySeconds", 5})
		}
		return patch
	}
	const own, template = "metadata.creationTimestamp", "spec.template.metadata.creationTimestamp"
	for _, tc := range []struct {
		paths []string
		said  int
	}{
		{paths: []string{own, template}},
		{paths: []string{own}, said: 1},
		{said: 1},
	} {
		t.Run(strings.Join(tc.paths, " "), func(t *testing.T) {
			t.Parallel()
			o := Options{Objects: 4}
			for _, path := range tc.paths {
				o.Exceptions = append(o.Exceptions, Exception{Path: path, Reason: "an old library"})
			}
			report, err := Run(t.Context(), patching("apps", "v1", "deployments", onCreate, respond), o)
			if err != nil {
				t.Fatal(err)
			}
			said := 0
			for _, v := range report.Findings {
				if v.FailureMode == FailureNoOpPatch && v.Verdict == Advice {
					said++
				}
			}
			if !report.OK() || said != tc.said {
				t.Errorf("said %d times, want %d:\n%s", said, tc.said, text(report))
			}
		})
	}
}
