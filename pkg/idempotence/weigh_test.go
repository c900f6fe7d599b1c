// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// job is a sample of a custom resource with an embedded Pod template and an identity.
func job() runtime.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Job", "metadata": map[string]any{"name": "a", "namespace": "shop"},
		"spec": map[string]any{
			"size":     int64(1),
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "shop:1"}}}},
		},
	}}
}

// jobCRD returns the definition of the kind of job.
func jobCRD() *apiextensionsv1.CustomResourceDefinition {
	type schema = apiextensionsv1.JSONSchemaProps
	text := schema{Type: "string"}
	object := func(properties map[string]schema) schema { return schema{Type: "object", Properties: properties} }
	free := schema{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	list := schema{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: ptr.To(free)}}
	texts := schema{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: ptr.To(text)}}
	port := object(map[string]schema{"port": {Type: "integer"}, "protocol": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"TCP"`)}}})
	port.Required = []string{"port"}
	ports := schema{
		Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"port", "protocol"},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &port},
	}
	spec := object(map[string]schema{
		"creator": object(map[string]schema{"name": text, "team": text}), "tls": object(map[string]schema{"mode": text, "cert": text}),
		"template": free, "id": text, "size": {Type: "integer"}, "env": list,
		"access": object(map[string]schema{"allowed": texts}), "ports": ports,
	})
	spec.Required = []string{"size"}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "jobs.shop.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "shop.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "jobs", Singular: "job", Kind: "Job", ListKind: "JobList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: ptr.To(object(map[string]schema{"spec": spec, "status": free}))},
			}},
		},
	}
}

// violations returns the laws and failure modes of the violations in a report.
func violations(r *Report) string {
	var all []string
	for _, v := range r.Findings {
		if v.Verdict != Advice {
			all = append(all, fmt.Sprintf("%s %s", v.Law, v.FailureMode))
		}
	}
	return strings.Join(all, ", ")
}

// encoded marks an object. If the mark is new, it also writes the zero values of a Go type: into a struct and into each
// variable.
func encoded(_ *admissionv1.AdmissionRequest, doc document) {
	notes, spec := at(doc, "metadata", "annotations"), at(doc, "spec")
	if notes["example.com/ok"] != nil {
		return
	}
	notes["example.com/ok"] = "yes"
	structs := []document{at(spec, "creator")}
	list, _ := spec["env"].([]any)
	for _, variable := range list {
		structs = append(structs, variable.(document))
	}
	for i, s := range structs {
		for _, name := range [][]string{{"name", "team"}, {"value", "note"}}[min(i, 1)] {
			if s[name] == nil {
				s[name] = ""
			}
		}
	}
}

// forEach calls do with each element of a list.
func forEach(list any, do func(document)) {
	elements, _ := list.([]any)
	for _, e := range elements {
		do(e.(document))
	}
}

// TestFindingsAreWeighed tests webhooks for a custom resource. Some of them do something harmless or intended. Others
// look similar, but are broken: only these may have violations.
func TestFindingsAreWeighed(t *testing.T) {
	mark := func(doc document) { at(doc, "metadata", "annotations")["example.com/ok"] = "yes" }
	var drawn atomic.Int64
	for _, tt := range []struct {
		name string
		edit func(*admissionv1.AdmissionRequest, document)
		want string // the expected violation, or "" for none
	}{
		{"sets the identity of the caller", func(r *admissionv1.AdmissionRequest, doc document) {
			at(doc, "spec")["creator"] = document{"name": r.UserInfo.Username}
		}, ""},
		{"sets a whole struct if one field differs", func(_ *admissionv1.AdmissionRequest, doc document) {
			if at(doc, "spec", "tls")["mode"] != "strict" {
				at(doc, "spec")["tls"] = document{"mode": "strict"}
			}
		}, "removes"},
		{"writes empty values of Go types", func(_ *admissionv1.AdmissionRequest, doc document) {
			mark(doc)
			template := at(doc, "spec", "template")
			at(template, "metadata")["creationTimestamp"] = nil
			for _, c := range at(template, "spec")["containers"].([]any) {
				at(c.(document), "resources")
			}
			at(doc, "status")
		}, ""},
		{"encodes its type when it changes something", encoded, ""},
		{"leaves out empty texts, so that a port has its default", func(r *admissionv1.AdmissionRequest, doc document) {
			marked(r, doc)
			list, _ := at(doc, "spec")["ports"].([]any)
			for _, port := range list {
				if port.(document)["protocol"] == "" {
					delete(port.(document), "protocol")
				}
			}
		}, ""},
		{"gives all ports one protocol", func(r *admissionv1.AdmissionRequest, doc document) {
			marked(r, doc)
			list, _ := at(doc, "spec")["ports"].([]any)
			for _, port := range list {
				port.(document)["protocol"] = "TCP"
			}
		}, "invalid"},
		{"writes an empty text", func(_ *admissionv1.AdmissionRequest, doc document) {
			if at(doc, "spec")["id"] == nil {
				at(doc, "spec")["id"] = ""
			}
		}, "L11 adds a zero value"},
		{"allows all addresses if the author allows none", func(_ *admissionv1.AdmissionRequest, doc document) {
			access := at(doc, "spec", "access")
			if list, _ := access["allowed"].([]any); len(list) == 0 {
				access["allowed"] = []any{"::/0", "0.0.0.0/0"}
			}
		}, ""},
		{"writes a coarse time where there is none", func(r *admissionv1.AdmissionRequest, doc document) {
			if at(doc, "spec")["id"] == nil {
				at(doc, "spec")["id"] = fmt.Sprint("at-", time.Now().UnixMilli()/50)
			}
		}, ""},
		{"draws an ID for all elements without one", func(_ *admissionv1.AdmissionRequest, doc document) {
			forEach(at(doc, "spec")["env"], func(variable document) {
				if variable["id"] == nil {
					variable["id"] = fmt.Sprint("id-", drawn.Add(1))
				}
			})
		}, ""},
		{"draws an ID for elements of two kinds", func(_ *admissionv1.AdmissionRequest, doc document) {
			forEach(at(doc, "spec")["env"], func(variable document) {
				for _, kind := range []string{"disk", "network"} {
					if of, ok := variable[kind].(document); ok && (of["id"] == nil || of["id"] == "") {
						of["id"] = fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(drawn.Add(1)))))
					}
				}
			})
		}, ""},
		{"draws a name and keeps it", func(_ *admissionv1.AdmissionRequest, doc document) {
			if at(doc, "spec")["id"] == nil {
				at(doc, "spec")["id"] = fmt.Sprint("id-", drawn.Add(1))
			}
		}, ""},
		{"draws a name for each element and keeps it", func(_ *admissionv1.AdmissionRequest, doc document) {
			forEach(at(doc, "spec")["env"], func(e document) {
				if e["name"] == nil {
					e["name"] = fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(drawn.Add(1)))))
				}
			})
		}, ""},
		{"draws one name for all elements", func(_ *admissionv1.AdmissionRequest, doc document) {
			name := fmt.Sprint("id-", drawn.Add(1))
			forEach(at(doc, "spec")["env"], func(e document) {
				if e["value"] == nil {
					e["value"] = name
				}
			})
		}, "L4b treated unlike"},
		{"writes one time for all elements", func(_ *admissionv1.AdmissionRequest, doc document) {
			now := fmt.Sprint("at-", time.Now().Unix())
			forEach(at(doc, "spec")["env"], func(e document) {
				if e["value"] == nil {
					e["value"] = now
				}
			})
		}, ""},
		{"draws one of three names and keeps it", func(_ *admissionv1.AdmissionRequest, doc document) {
			if at(doc, "spec")["id"] == nil {
				at(doc, "spec")["id"] = fmt.Sprint("zone-", drawn.Add(1)%3)
			}
		}, "L3 varies"},
		{"draws a name and adds it as an element", func(_ *admissionv1.AdmissionRequest, doc document) {
			list, _ := at(doc, "spec")["env"].([]any)
			if !slices.ContainsFunc(list, func(e any) bool { return strings.HasPrefix(fmt.Sprint(e.(document)["name"]), "id-") }) {
				at(doc, "spec")["env"] = append(list, document{"name": fmt.Sprint("id-", drawn.Add(1)), "value": "1"})
			}
		}, "L3 varies"},
		{"draws a name, keeps it, and appends an element in each call", func(_ *admissionv1.AdmissionRequest, doc document) {
			spec := at(doc, "spec")
			if spec["id"] == nil {
				spec["id"] = fmt.Sprint("id-", drawn.Add(1))
			}
			list, _ := spec["env"].([]any)
			spec["env"] = append(list, document{"name": "A", "value": "1"})
		}, "L1 grows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subject := editing("shop.example.com", "v1", "jobs", onCreate, tt.edit)
			subject.webhooks[0].ReinvocationPolicy = ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy)
			sample := job().(*unstructured.Unstructured)
			if strings.Contains(tt.name, "element") {
				sample.Object["spec"].(document)["env"] = []any{document{"note": "a"}, document{"note": "b"}}
			}
			if strings.Contains(tt.name, "all elements") {
				sample.Object["spec"].(document)["env"] = []any{document{"name": "a"}, document{"name": "b"}}
			}
			if strings.Contains(tt.name, "two kinds") {
				disk, network := document{"size": int64(1)}, document{"loss": int64(1)}
				sample.Object["spec"].(document)["env"] = []any{
					document{"name": "a", "disk": disk}, document{"name": "b", "network": network}, document{"name": "c", "disk": disk},
				}
			}
			report, err := Run(t.Context(), subject, Options{
				Objects: 6, Samples: []runtime.Object{sample}, CRDs: []*apiextensionsv1.CustomResourceDefinition{jobCRD()},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := violations(report); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("violations %q, want %q:\n%s", got, tt.want, text(report))
			}
			if strings.HasPrefix(tt.name, "draws") && !strings.Contains(tt.name, "appends") && violations(report) != tt.want {
				t.Errorf("violations %q beside the drawn value:\n%s", violations(report), text(report))
			}
		})
	}
}

// TestValidOnceFilled tests webhooks with a sample that lacks a required field. If the webhook fills the field, the run
// must be complete and name the field. Otherwise it must report that the sample is not valid.
func TestValidOnceFilled(t *testing.T) {
	sample := job().(*unstructured.Unstructured)
	unstructured.RemoveNestedField(sample.Object, "spec", "size")
	for fills, says := range map[bool]string{true: "because the webhook fills them: spec.size", false: "correct the fields that the message names"} {
		report, err := Run(t.Context(), editing("shop.example.com", "v1", "jobs", onCreate, func(r *admissionv1.AdmissionRequest, doc document) {
			marked(r, doc)
			if spec := at(doc, "spec"); fills && spec["size"] == nil {
				spec["size"] = 1
			}
		}), Options{Objects: 1, Samples: []runtime.Object{sample}, CRDs: []*apiextensionsv1.CustomResourceDefinition{jobCRD()}})
		if err != nil {
			t.Fatal(err)
		}
		if words := strings.Join(strings.Fields(text(report)), " "); !report.OK() || (len(report.Incomplete) == 0) != fills || !strings.Contains(words, says) {
			t.Errorf("fills %t: no %q in\n%s", fills, says, text(report))
		}
	}
}

// TestNoPatchIsHiddenByOneWithoutEffect tests a webhook with two faults: it always sends a patch, and it mounts its
// volume at a path that a user may have taken. The harness must report both, the patch once and as advice.
func TestNoPatchIsHiddenByOneWithoutEffect(t *testing.T) {
	subject := patching("", "v1", "pods", onCreate, func(r *admissionv1.AdmissionRequest) []operation {
		doc := decoded(r.Object.Raw)
		patch := []operation{{"add", "/metadata/creationTimestamp", nil}}
		if at(doc, "metadata", "annotations")["example.com/ok"] == nil {
			patch = append(patch, operation{"add", "/metadata/annotations", document{"example.com/ok": "yes"}})
		}
		return patch
	})
	report, err := Run(t.Context(), subject, Options{Objects: 6})
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Count(text(report), "changes nothing, but sends a patch"); said != 1 || !strings.Contains(violations(report), "L10 removes") {
		t.Errorf("said %d times, violations %q:\n%s", said, violations(report), text(report))
	}
}

// TestPolicyWeighs tests a webhook that does not change late containers. If it handles CREATE only and has the
// reinvocationPolicy Never, that must be advice, and the report must name the law to correct before IfNeeded. For a
// correct webhook, IfNeeded must be safe.
func TestPolicyWeighs(t *testing.T) {
	late := func(_ *admissionv1.AdmissionRequest, doc document) {
		notes := at(doc, "metadata", "annotations")
		if notes["example.com/ok"] != nil {
			return
		}
		notes["example.com/ok"] = "yes"
		for _, c := range at(doc, "spec")["containers"].([]any) {
			env, _ := c.(document)["env"].([]any)
			c.(document)["env"] = append(env, document{"name": "LATE", "value": "no"})
		}
	}
	for policy, tt := range map[admissionregistrationv1.ReinvocationPolicyType]struct {
		edit change
		ok   bool
		says string
	}{
		admissionregistrationv1.NeverReinvocationPolicy:    {late, true, "Before you set IfNeeded, correct what breaks late additions (L4b)"},
		admissionregistrationv1.IfNeededReinvocationPolicy: {late, false, ""},
		"": {marked, true, "It is safe to set IfNeeded"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			subject := editing("", "v1", "pods", onCreate, tt.edit)
			if policy != "" {
				subject.webhooks[0].ReinvocationPolicy = &policy
			}
			report, err := Run(t.Context(), subject, Options{Objects: 6, Without: []Law{L4a, L5, L12}})
			if err != nil {
				t.Fatal(err)
			}
			notes := report.Texts(report.Notes)
			if report.OK() != tt.ok || !strings.Contains(notes, tt.says) || tt.says == "" && strings.Contains(notes, "IfNeeded") {
				t.Errorf("notes %q:\n%s", notes, text(report))
			}
		})
	}
}

// TestExceptionsReachIntoElements tests a webhook that sets a value inside list elements without keys. An exception for
// the value must cover it. For an exception with a wrong path, the report must propose one that covers the value.
func TestExceptionsReachIntoElements(t *testing.T) {
	var calls atomic.Int64
	edit := func(_ *admissionv1.AdmissionRequest, doc document) {
		at(doc, "spec")["sources"] = []any{document{"token": document{"path": "t", "seconds": calls.Add(1)}}}
	}
	for path, want := range map[string]string{
		"spec.sources[*].token.seconds": "",
		"spec.sources[*].token.path":    "L3 varies",
	} {
		t.Run(path, func(t *testing.T) {
			report, err := Run(t.Context(), editing("shop.example.com", "v1", "jobs", onCreate, edit), Options{
				Objects: 4, Samples: []runtime.Object{job()}, Exceptions: []Exception{{Path: path, Reason: "it is drawn"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := violations(report); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("violations %q, want %q:\n%s", got, want, text(report))
			}
			if want != "" && !strings.Contains(strings.Join(strings.Fields(text(report)), " "), `{Path: "spec.sources[*]", Law: idempotence.L3`) {
				t.Errorf("no exception is proposed:\n%s", text(report))
			}
		})
	}
}
