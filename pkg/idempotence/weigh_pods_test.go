// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// topology names the annotation that the webhooks of TestPodFindingsAreWeighed read.
const topology = "example.com/topology"

// podWith returns a Pod with a topology annotation and a memory limit.
func podWith(key, limit string) runtime.Object {
	return &unstructured.Unstructured{Object: document{
		"apiVersion": "v1", "kind": "Pod", "metadata": document{"name": "a", "annotations": document{topology: key}},
		"spec": document{"containers": []any{
			document{"name": "app", "image": "app:1", "resources": document{"limits": document{"memory": limit}, "requests": document{"memory": "0"}}},
		}},
	}}
}

// term returns a term of an affinity.
func term(key, app string) document {
	return document{"topologyKey": key, "labelSelector": document{"matchLabels": document{"app": app}}}
}

// terms returns the list of required terms in the affinity of a Pod.
func terms(doc document, affinity string) (in document, list []any) {
	in = at(doc, "spec", "affinity", affinity)
	list, _ = in["requiredDuringSchedulingIgnoredDuringExecution"].([]any)
	return in, list
}

// spread adds a term for and one against the Pods of one app. If all is true, it adds both again if one is missing.
func spread(all bool) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		key, ok := at(doc, "metadata", "annotations")[topology].(string)
		if !ok {
			return
		}
		added := map[string]bool{}
		for _, of := range []string{"podAffinity", "podAntiAffinity"} {
			_, list := terms(doc, of)
			added[of] = slices.ContainsFunc(list, func(t any) bool { return t.(document)["topologyKey"] == key })
		}
		complete := added["podAffinity"] && added["podAntiAffinity"]
		for of, is := range added {
			if in, list := terms(doc, of); !complete && (all || !is) {
				in["requiredDuringSchedulingIgnoredDuringExecution"] = append(list, term(key, of))
			}
		}
	}
}

// ranged writes the names of two resources into an annotation, in a random order.
func ranged(_ *admissionv1.AdmissionRequest, doc document) {
	at(doc, "metadata", "annotations")["example.com/resources"] = []string{"cpu, memory", "memory, cpu"}[rand.IntN(2)]
}

// rangedAndAppended is like ranged, and also appends a variable to each container in each call.
func rangedAndAppended(r *admissionv1.AdmissionRequest, doc document) {
	ranged(r, doc)
	for _, c := range at(doc, "spec")["containers"].([]any) {
		env, _ := c.(document)["env"].([]any)
		c.(document)["env"] = append(env, document{"name": "A", "value": "1"})
	}
}

// front puts an element at the front of a list in each call.
func front(list func(doc document) (in document, name string), element document) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		in, name := list(doc)
		elements, _ := in[name].([]any)
		elements = slices.DeleteFunc(elements, func(e any) bool { return e.(document)["name"] == element["name"] })
		in[name] = slices.Insert(elements, 0, any(element))
	}
}

func containersOf(doc document) (document, string) { return at(doc, "spec"), "containers" }

func variablesOf(doc document) (document, string) {
	return at(doc, "spec")["containers"].([]any)[0].(document), "env"
}

// raised requests memory for each container, unless the Pod itself has requests or limits.
func raised(_ *admissionv1.AdmissionRequest, doc document) {
	if at(doc, "spec")["resources"] != nil {
		return
	}
	for _, c := range at(doc, "spec")["containers"].([]any) {
		at(c.(document), "resources", "requests")["memory"] = "128Mi"
	}
}

// agent adds a container unless it is there. The function gets the text of the topology annotation. If always is not
// set, agent does nothing for a Pod without the annotation.
func agent(always bool, of func(note string) document) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		note, ok := at(doc, "metadata", "annotations")[topology].(string)
		if !ok && !always {
			return
		}
		list := at(doc, "spec")["containers"].([]any)
		sidecars, _ := at(doc, "spec")["initContainers"].([]any)
		if !slices.ContainsFunc(slices.Concat(list, sidecars), func(c any) bool { return c.(document)["name"] == "agent" }) {
			container := of(note)
			container["name"] = "agent"
			at(doc, "spec")["containers"] = append(list, container)
		}
	}
}

// portOf returns a container with the port of an address.
func portOf(address string) document {
	_, text, _ := strings.Cut(address, ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		return document{"image": "agent:1"}
	}
	return document{"image": "agent:1", "ports": []any{document{"containerPort": port}}}
}

// imageOf returns a container with an image, if there is one.
func imageOf(image string) document {
	if image == "" {
		return document{}
	}
	return document{"image": image}
}

// requires appends a requirement to each node selector term in each call. If preferred is set, it also appends a term
// with a weight.
func requires(preferred bool) change {
	own := document{"key": "example.com/pool", "operator": "In", "values": []any{"general"}}
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		affinity := at(doc, "spec", "affinity", "nodeAffinity")
		required := at(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
		list, _ := required["nodeSelectorTerms"].([]any)
		if len(list) == 0 {
			list = []any{document{}}
		}
		for _, of := range list {
			expressions, _ := of.(document)["matchExpressions"].([]any)
			of.(document)["matchExpressions"] = append(expressions, own)
		}
		required["nodeSelectorTerms"] = list
		if preferred {
			list, _ := affinity["preferredDuringSchedulingIgnoredDuringExecution"].([]any)
			affinity["preferredDuringSchedulingIgnoredDuringExecution"] =
				append(list, document{"weight": 1, "preference": document{"matchExpressions": []any{own}}})
		}
	}
}

// numbered sets a variable in the first two containers.
func numbered(_ *admissionv1.AdmissionRequest, doc document) {
	for i, c := range at(doc, "spec")["containers"].([]any) {
		env, _ := c.(document)["env"].([]any)
		if i < 2 && len(env) == 0 {
			c.(document)["env"] = []any{document{"name": "NUMBER", "value": "one of two"}}
		}
	}
}

// noted writes an annotation for each container, named by the first letters of its name.
func noted(_ *admissionv1.AdmissionRequest, doc document) {
	for _, c := range at(doc, "spec")["containers"].([]any) {
		name := c.(document)["name"].(string)
		at(doc, "metadata", "annotations")["example.com/"+name[:min(len(name), 5)]] = "seen"
	}
}

// TestPodFindingsAreWeighed tests webhooks for Pods. Some do something that is harmless, intended, or caused by the
// author of the Pod. Others look similar, but are broken: only these may have violations, one for each cause.
func TestPodFindingsAreWeighed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		edit   change
		sample runtime.Object
		laws   []Law // the laws that are checked, or nil for all
		want   string
	}{
		{"copies an empty key into a required field", spread(false), podWith("", "1Gi"), []Law{L1}, ""},
		{"copies an invalid key", spread(false), podWith("-1", "1Gi"), []Law{L1}, ""},
		{"copies a part of an annotation", agent(false, portOf), podWith("0.0.0.0:99999", "1Gi"), []Law{L1}, ""},
		{"writes a port that an annotation has, too", agent(true, func(string) document { return portOf(":99999") }), podWith("0.0.0.0:99999", "1Gi"), []Law{L1}, "L1 invalid"},
		{"leaves out an empty annotation", agent(false, imageOf), podWith("", "1Gi"), []Law{L1}, ""},
		{"leaves out the image", agent(true, func(string) document { return document{} }), podWith("", "1Gi"), []Law{L1}, "L1 invalid"},
		{"adds a requirement in each call", requires(false), podWith("rack", "1Gi"), []Law{L4a, L5, L12}, ""},
		{"adds a requirement in each call, which breaks L1", requires(false), podWith("rack", "1Gi"), []Law{L1}, "L1 grows"},
		{"adds a weight in each call", requires(true), podWith("rack", "1Gi"), []Law{L12}, "L12 never settles"},
		{"acts on the first two containers", numbered, podWith("rack", "1Gi"), []Law{L5}, ""},
		{"takes two containers for one", noted, podWith("rack", "1Gi"), []Law{L5}, "L5 incomplete"},
		{"requests more than a limit of 0", raised, podWith("rack", "0"), []Law{L1}, ""},
		{"requests more than the limit", raised, podWith("rack", "64Mi"), []Law{L1}, "L1 invalid"},
		{"adds both terms if one has changed", spread(true), podWith("rack", "1Gi"), []Law{L4a}, ""},
		{"writes an annotation in a random order", ranged, podWith("rack", "1Gi"), nil, "L3 varies"},
		{"writes an annotation in a random order, and appends", rangedAndAppended, podWith("rack", "1Gi"), []Law{L1, L3}, "L1 grows, L3 varies"},
		{"keeps its container first", front(containersOf, document{"name": "first", "image": "first:1"}), podWith("rack", "1Gi"), []Law{L12}, "L12 never settles"},
		{"keeps its variable first", front(variablesOf, document{"name": "FIRST", "value": "1"}), podWith("rack", "1Gi"), []Law{L12}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subject := editing("", "v1", "pods", onCreate, tt.edit)
			subject.webhooks[0].ReinvocationPolicy = ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy)
			var without []Law
			if tt.laws != nil {
				without = slices.DeleteFunc(slices.Clone(Laws), func(l Law) bool { return slices.Contains(tt.laws, l) })
			}
			report, err := Run(t.Context(), subject, Options{Objects: 3, Samples: []runtime.Object{tt.sample}, Without: without})
			if err != nil {
				t.Fatal(err)
			}
			if got := violations(report); got != tt.want {
				t.Errorf("violations %q, want %q:\n%s", got, tt.want, text(report))
			}
		})
	}
}
