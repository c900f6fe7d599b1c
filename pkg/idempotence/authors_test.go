// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// streamCRD defines a kind whose status is an ordinary field, and streamWithStatus one with the status subresource.
const streamCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: streams.bus.example.com}
spec:
  group: bus.example.com
  scope: Namespaced
  names: {kind: Stream, plural: streams}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              id: {type: string}
              kafkaHeaders: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}}
          status:
            type: object
            properties:
              phase: {type: string, minLength: 1}
              conditions:
                type: array
                items:
                  type: object
                  required: [type, status, lastTransitionTime]
                  properties:
                    type: {type: string, maxLength: 316}
                    status: {type: string, enum: ["True", "False", Unknown]}
                    lastTransitionTime: {type: string, format: date-time}
                    reason: {type: string, minLength: 1, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'}
`

const streamWithStatus = streamCRD + "    subresources: {status: {}}\n"

func stream(annotations map[string]any) runtime.Object {
	return &unstructured.Unstructured{Object: document{
		"apiVersion": "bus.example.com/v1", "kind": "Stream",
		"metadata": document{"name": "orders", "namespace": "shop", "annotations": annotations}, "spec": document{},
	}}
}

func annotatedPod(annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
	}
}

func classedIngress() runtime.Object {
	return &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"kubernetes.io/ingress.class": "public"}},
		Spec:       networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}},
	}
}

// containerOf returns the first container of a Pod.
func containerOf(doc document) document {
	list, _ := at(doc, "spec")["containers"].([]any)
	if len(list) == 0 {
		return document{}
	}
	c, _ := list[0].(document)
	return c
}

// addsArguments returns a change that adds arguments to the first container, unless it has one that is equal to known or
// begins with known and "=".
func addsArguments(known string, arguments ...any) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		c := containerOf(doc)
		args, _ := c["args"].([]any)
		if !slices.ContainsFunc(args, func(a any) bool { return strings.HasPrefix(a.(string), known) }) {
			c["args"] = append(args, arguments...)
		}
	}
}

// moves returns a change that moves an annotation into a field of the spec, and ignores the annotation if the field is
// set. A nil list of values permits every value.
func moves(key, field string, values ...string) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		annotations := at(doc, "metadata", "annotations")
		value, there := annotations[key].(string)
		if !there {
			return
		}
		delete(annotations, key)
		if at(doc, "spec")[field] == nil && (values == nil || slices.Contains(values, value)) {
			at(doc, "spec")[field] = value
		}
	}
}

// servingPod returns a Pod with an argument that is no flag.
func servingPod() runtime.Object {
	p := annotatedPod(nil)
	p.Spec.Containers[0].Args = []string{"serve"}
	return p
}

// addsFirst returns a change that adds an argument before all others, unless a container has it.
func addsFirst(argument string) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		c := containerOf(doc)
		if args, _ := c["args"].([]any); !slices.Contains(args, any(argument)) {
			c["args"] = append([]any{argument}, args...)
		}
	}
}

func placedStream() runtime.Object {
	o := stream(nil).(*unstructured.Unstructured)
	o.Object["spec"] = document{"id": "small"}
	return o
}

// choosesOnce puts spec.id into a pool, and restores the old value in updates.
func choosesOnce(r *admissionv1.AdmissionRequest, doc document) {
	id, _ := at(doc, "spec")["id"].(string)
	if r.Operation == admissionv1.Update {
		if was, _ := at(decoded(r.OldObject.Raw), "spec")["id"].(string); strings.HasPrefix(was, "pool/") {
			at(doc, "spec")["id"] = was
			return
		}
	}
	if id != "" && !strings.HasPrefix(id, "pool/") {
		at(doc, "spec")["id"] = "pool/" + id
	}
}

// least returns a change that sets a field of an object in a Pod's spec, or of the spec itself, to a minimum.
func least(parent, field string, minimum int64) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		in := at(doc, "spec")
		if parent != "" {
			in = at(in, parent)
		}
		if value, ok := in[field].(float64); !ok || int64(value) < minimum {
			in[field] = minimum
		}
	}
}

// fromStatus returns a change that derives spec.id from a status.
func fromStatus(status func(r *admissionv1.AdmissionRequest, doc document) document) change {
	return func(r *admissionv1.AdmissionRequest, doc document) {
		id := "new"
		if conditions, _ := status(r, doc)["conditions"].([]any); len(conditions) > 0 {
			id = "known"
		}
		at(doc, "spec")["id"] = id
	}
}

func ownStatus(_ *admissionv1.AdmissionRequest, doc document) document {
	status, _ := doc["status"].(document)
	return status
}

func oldStatus(r *admissionv1.AdmissionRequest, _ document) document {
	status, _ := decoded(r.OldObject.Raw)["status"].(document)
	return status
}

// addsHeader returns a change that adds a header unless a list in the spec has one with this name.
func addsHeader(list, name string) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		headers, _ := at(doc, "spec")[list].([]any)
		if !slices.ContainsFunc(headers, func(h any) bool { return h.(document)["name"] == name }) {
			at(doc, "spec")[list] = append(headers, document{"name": name, "value": "shop"})
		}
	}
}

// TestValuesOfTheAuthor tests webhooks for values that the author of an object sets, or changes later: zeros, minimum
// values, flags in other forms, and annotations that the webhook moves.
func TestValuesOfTheAuthor(t *testing.T) {
	pods, streams, ingresses := [3]string{"", "v1", "pods"}, [3]string{"bus.example.com", "v1", "streams"}, [3]string{"networking.k8s.io", "v1", "ingresses"}
	claims := [3]string{"", "v1", "persistentvolumeclaims"}
	size := map[string]any{"bus.example.com/size": "small"}
	for _, tt := range []struct {
		name   string
		of     [3]string
		sample runtime.Object
		edit   change
		crd    string
		want   string
	}{
		{"a user other than root", pods, annotatedPod(nil), least("securityContext", "runAsUser", 1), "", ""},
		{"a range of users", pods, annotatedPod(nil), least("securityContext", "runAsUser", 1000), "", ""},
		{"an empty class means none", claims, claim(), func(_ *admissionv1.AdmissionRequest, doc document) {
			if class := at(doc, "spec")["storageClassName"]; class == nil || class == "" {
				at(doc, "spec")["storageClassName"] = "fast"
			}
		}, "", "L5 overwrites a zero"},
		{"an absent class", claims, claim(), func(_ *admissionv1.AdmissionRequest, doc document) {
			if at(doc, "spec")["storageClassName"] == nil {
				at(doc, "spec")["storageClassName"] = "fast"
			}
		}, "", ""},
		{"a bool in one word", pods, annotatedPod(nil), addsArguments("--anonymous-auth=", "--anonymous-auth=false"), "", ""},
		{"a level in one word", pods, annotatedPod(nil), addsArguments("--level=", "--level=info"), "", "L4a accumulates"},
		{"a level in two words", pods, annotatedPod(nil), func(r *admissionv1.AdmissionRequest, doc document) {
			if args, _ := containerOf(doc)["args"].([]any); !slices.Contains(args, any("--level")) {
				containerOf(doc)["args"] = append(args, "--level", "info")
			}
		}, "", "L4a accumulates"},
		{"a level in either form", pods, annotatedPod(nil), addsArguments("--level", "--level=info"), "", ""},
		{"a bool before another word", pods, servingPod(), addsFirst("--verbose"), "", ""},
		{"a bool with the value 1", pods, annotatedPod(nil), addsArguments("--verbose=", "--verbose=1"), "", ""},
		{"the priority", pods, annotatedPod(nil), least("", "priority", 1), "", ""},
		{"headers of Kafka are case-sensitive", streams, stream(nil), addsHeader("kafkaHeaders", "Tenant"), streamWithStatus, ""},
		{"a size that may be unknown", streams, stream(size), moves("bus.example.com/size", "id", "small", "large"), streamWithStatus, ""},
		{"a size that is moved once", streams, stream(size), moves("bus.example.com/size", "id"), streamWithStatus, "L6 ignores a change"},
		{"a size that is moved once, beside many annotations", streams, stream(map[string]any{"a.example.com/1": "a", "a.example.com/2": "b", "a.example.com/3": "c", "a.example.com/4": "d", "bus.example.com/size": "small"}), moves("bus.example.com/size", "id"), streamWithStatus, "L6 ignores a change"},
		{"the class of an Ingress is moved once", ingresses, classedIngress(), moves("kubernetes.io/ingress.class", "ingressClassName"), "", "L6 ignores a change"},
		{"a value that is chosen once", streams, placedStream(), choosesOnce, streamWithStatus, ""},
		{"the status is an ordinary field", streams, stream(nil), fromStatus(ownStatus), streamCRD, ""},
		{"the status of the new object", streams, stream(nil), fromStatus(ownStatus), streamWithStatus, "L6 depends on the status"},
		{"the status of the old object", streams, stream(nil), fromStatus(oldStatus), streamWithStatus, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Samples: []runtime.Object{tt.sample}, Objects: 4}
			operations := onBoth
			if tt.of == pods || tt.of == claims {
				operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create} // most fields are immutable
			}
			if tt.crd != "" {
				crd := new(apiextensionsv1.CustomResourceDefinition)
				if err := yaml.UnmarshalStrict([]byte(tt.crd), crd); err != nil {
					t.Fatal(err)
				}
				o.CRDs = append(o.CRDs, crd)
			}
			report, err := Run(t.Context(), editing(tt.of[0], tt.of[1], tt.of[2], operations, tt.edit), o)
			if err != nil {
				t.Fatal(err)
			}
			if got := violations(report); got != tt.want && (tt.want == "" || !strings.Contains(got, tt.want)) {
				t.Errorf("violations %q, want %q:\n%s", got, tt.want, text(report))
			}
		})
	}
}

// TestMendedUpdates stores the cases of webhooks that break L6, and mends the webhooks. Each case must pass then, although
// the samples have only a generateName, and the rules of one webhook have no UPDATE.
func TestMendedUpdates(t *testing.T) {
	nameless := func(o runtime.Object) runtime.Object {
		meta := o.(metav1.Object)
		meta.SetGenerateName(meta.GetName() + "-")
		meta.SetName("")
		return o
	}
	follows := func(_ *admissionv1.AdmissionRequest, doc document) {
		if value := at(doc, "metadata", "annotations")["bus.example.com/size"]; value != nil {
			at(doc, "spec")["id"] = value
		}
	}
	crd := new(apiextensionsv1.CustomResourceDefinition)
	if err := yaml.UnmarshalStrict([]byte(streamWithStatus), crd); err != nil {
		t.Fatal(err)
	}
	size := map[string]any{"bus.example.com/size": "small"}
	for _, tt := range []struct {
		name           string
		of             [3]string
		sample         runtime.Object
		broken, mended change
		rules          []admissionregistrationv1.OperationType
	}{
		{"a later change", [3]string{"bus.example.com", "v1", "streams"}, stream(size), moves("bus.example.com/size", "id"), follows, onBoth},
		{"the status", [3]string{"bus.example.com", "v1", "streams"}, stream(size), fromStatus(ownStatus), follows, onBoth},
		{"an immutable field", [3]string{"apps", "v1", "statefulsets"}, database(), setsField("serviceName", "db"), setsField("minReadySeconds", 5), onBoth[:1]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(edit change) *Report {
				t.Helper()
				report, err := Run(t.Context(), editing(tt.of[0], tt.of[1], tt.of[2], tt.rules, edit), Options{
					Samples: []runtime.Object{nameless(tt.sample.DeepCopyObject())}, Objects: 2, Store: dir, CRDs: []*apiextensionsv1.CustomResourceDefinition{crd},
				})
				if err != nil {
					t.Fatal(err)
				}
				return report
			}
			run(tt.broken)
			report := run(tt.mended)
			if !slices.ContainsFunc(report.Replayed, func(r Replayed) bool { return r.Verdict == Passes }) || len(report.Replayed) != strings.Count(text(report), "mended: ") {
				t.Errorf("%+v\n%s", report.Replayed, text(report))
			}
			if files := stored(t, dir); len(files) == 0 {
				t.Error("no case was stored")
			}
		})
	}
}

// TestReplacedWithoutUpdate replaces an object by its manifest. The rules have no UPDATE, so the report must name what is
// missing then, and nothing else.
func TestReplacedWithoutUpdate(t *testing.T) {
	annotates := func(_ *admissionv1.AdmissionRequest, doc document) {
		at(doc, "metadata", "annotations")["example.com/sign-in"] = "yes"
		at(doc, "spec")["minReadySeconds"] = 5
	}
	report, err := Run(t.Context(), editing("apps", "v1", "statefulsets", onBoth[:1], annotates), Options{Samples: []runtime.Object{database()}, Objects: 2})
	if err != nil {
		t.Fatal(err)
	}
	const lost = "because its rules do not include UPDATE: metadata.annotations is removed, spec.minReadySeconds is removed"
	if i := slices.IndexFunc(report.Findings, func(v *Violation) bool { return v.FailureMode == FailureNeedsUpdate }); i < 0 || report.Findings[i].Verdict != Advice || !strings.HasSuffix(report.Findings[i].Summary, lost) {
		t.Errorf("want advice with %q:\n%s", lost, text(report))
	}
}

// TestAllocatedValuesAreKept replaces a Service by its manifest. The API server keeps its cluster IP and node ports then.
func TestAllocatedValuesAreKept(t *testing.T) {
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	headless := func(r *admissionv1.AdmissionRequest, doc document) {
		spec := at(doc, "spec")
		if r.Operation == admissionv1.Create && spec["clusterIP"] == nil && (spec["type"] == nil || spec["type"] == "ClusterIP") {
			spec["clusterIP"] = "None"
		}
	}
	for _, operations := range [][]admissionregistrationv1.OperationType{onBoth, onBoth[:1]} {
		report, err := Run(t.Context(), editing("", "v1", "services", operations, headless), Options{Samples: []runtime.Object{service}, Objects: 2})
		if err != nil {
			t.Fatal(err)
		}
		if got := text(report); violations(report) != "" || strings.Contains(got, "clusterIP is removed") {
			t.Errorf("%v: %s", operations, got)
		}
	}
}
