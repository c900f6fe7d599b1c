// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// An independentCase is a webhook, and the violations that the harness must report.
type independentCase struct {
	name     string
	sample   runtime.Object
	edit     change
	want     string // violations, or "" for a correct webhook
	onCreate bool   // the webhook does not handle UPDATE
}

func (c independentCase) subject() Subject {
	resources := map[string][3]string{
		"Ingress": {"networking.k8s.io", "v1", "ingresses"}, "Pod": {"", "v1", "pods"},
		"Gateway": {"net.example.com", "v1alpha1", "gateways"},
	}
	of := resources[c.sample.GetObjectKind().GroupVersionKind().Kind]
	operations := onBoth
	if c.onCreate {
		operations = onCreate
	}
	subject := editing(of[0], of[1], of[2], operations, c.edit)
	subject.webhooks[0].ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)
	return subject
}

func (c independentCase) run(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), c.subject(), Options{Samples: []runtime.Object{c.sample}, Objects: 8})
	if err != nil {
		t.Fatal(err)
	}
	if got := violations(report); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
		t.Errorf("violations %q, want %q:\n%s", got, c.want, text(report))
	}
}

// eachOf calls do for each object in the list at a path.
func eachOf(doc document, list string, do func(i int, element document), path ...string) {
	elements, _ := at(doc, path...)[list].([]any)
	for i, e := range elements {
		if element, ok := e.(document); ok {
			do(i, element)
		}
	}
}

// securedBy returns a change that adds TLS to each host of an Ingress, with a Secret whose name secret derives.
func securedBy(secret func(host string) string) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		spec := at(doc, "spec")
		tls, _ := spec["tls"].([]any)
		eachOf(doc, "rules", func(_ int, rule document) {
			host, _ := rule["host"].(string)
			known := slices.ContainsFunc(tls, func(e any) bool {
				hosts, _ := e.(document)["hosts"].([]any)
				return slices.Contains(hosts, any(host))
			})
			if host != "" && !known {
				tls = append(tls, document{"hosts": []any{host}, "secretName": secret(host)})
			}
		}, "spec")
		if len(tls) > 0 {
			spec["tls"] = tls
		}
	}
}

func dashed(host string) string {
	return strings.NewReplacer(".", "-", "*", "any").Replace(host) + "-tls"
}

func hashed(host string) string {
	sum := fnv.New64a()
	sum.Write([]byte(host))
	return fmt.Sprintf("tls-%x", sum.Sum64())
}

func shopIngress() runtime.Object {
	exact := networkingv1.PathTypeExact
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	return &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "shop.example.com", IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &exact, Backend: backend}}},
		}}}},
	}
}

func shopPod() runtime.Object {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"example.com/region": "north"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:v1"}}},
	}
}

func shopGateway(spec document) runtime.Object {
	o := gateway()
	fields := o.(runtime.Unstructured).UnstructuredContent()
	for name, value := range spec {
		fields["spec"].(document)[name] = value
	}
	return o
}

// identityOf returns a change that labels an object with a hash of its name.
func identityOf(name func(metadata document) string) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		metadata := at(doc, "metadata")
		if text := name(metadata); text != "" {
			at(doc, "metadata", "labels")["example.com/id"] = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
		}
	}
}

// regionOf returns a change that gives each container the region in an annotation. With always, it does so even if the
// annotation is missing.
func regionOf(always bool) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		notes, _ := at(doc, "metadata")["annotations"].(document)
		region, _ := notes["example.com/region"].(string)
		if region == "" && !always {
			return
		}
		eachOf(doc, "containers", func(_ int, c document) {
			env, _ := c["env"].([]any)
			if !slices.ContainsFunc(env, func(e any) bool { return e.(document)["name"] == "REGION" }) {
				c["env"] = append(env, document{"name": "REGION", "value": region})
			}
		}, "spec")
	}
}

// marksFirst sets default in the first listener of a Gateway, unless it has that field.
func marksFirst(_ *admissionv1.AdmissionRequest, doc document) {
	listeners, _ := at(doc, "spec")["listeners"].([]any)
	if len(listeners) == 0 {
		return
	}
	if chosen := listeners[0].(document); chosen["default"] == nil {
		chosen["default"] = true
	}
}

// withNumbers gives each listener that has no number the lowest free one.
func withNumbers(_ *admissionv1.AdmissionRequest, doc document) {
	taken := map[any]bool{}
	eachOf(doc, "listeners", func(_ int, l document) { taken[l["number"]] = true }, "spec")
	eachOf(doc, "listeners", func(_ int, l document) {
		for n := 1.0; l["number"] == nil; n++ {
			if !taken[n] {
				l["number"], taken[n] = n, true
			}
		}
	}, "spec")
}

// initFirst inserts an init container as the first one if it is missing. If moves is set, it also moves an existing one
// to the front.
func initFirst(moves bool) change {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		spec := at(doc, "spec")
		list, _ := spec["initContainers"].([]any)
		i := slices.IndexFunc(list, func(c any) bool { return c.(document)["name"] == "setup" })
		if i >= 0 && !moves {
			return
		}
		setup := any(document{"name": "setup", "image": "setup:v1"})
		if i >= 0 {
			setup, list = list[i], slices.Delete(slices.Clone(list), i, i+1)
		}
		spec["initContainers"] = slices.Insert(list, 0, setup)
	}
}

func independentCases() []independentCase {
	nameOf := func(metadata document) string {
		text, _ := metadata["name"].(string)
		return text
	}
	nameOrPrefix := func(metadata document) string {
		if text := nameOf(metadata); text != "" {
			return text
		}
		text, _ := metadata["generateName"].(string)
		return text
	}
	prefixFirst := func(metadata document) string {
		if text, _ := metadata["generateName"].(string); text != "" {
			return text
		}
		return nameOf(metadata)
	}
	fills := func(_ *admissionv1.AdmissionRequest, doc document) {
		spec := at(doc, "spec")
		spec["class"] = "public"
		zeros := document{"weight": 0, "retries": 0, "debug": false}
		for name, value := range zeros {
			if _, ok := spec[name]; !ok {
				spec[name] = value
			}
		}
	}
	return []independentCase{
		{"a Secret per host, named with dashes for dots", shopIngress(), securedBy(dashed), "L5 collides", false},
		{"a Secret per host, named by a hash", shopIngress(), securedBy(hashed), "", false},
		{"an ID from the name, or from the generateName without one", shopPod(), identityOf(nameOrPrefix), "L1 changes with the name", false},
		{"an ID from the generateName, or from the name without one", shopPod(), identityOf(prefixFirst), "", false},
		{"a variable from an annotation, or empty", shopPod(), regionOf(true), "L4b adds a zero value", true},
		{"a variable from an annotation, if there is one", shopPod(), regionOf(false), "", true},
		{"zero values that the user has not set", shopGateway(nil), fills, "L11 adds a zero value", false},
		{"a zero and a false that are defaults", shopGateway(nil), func(_ *admissionv1.AdmissionRequest, doc document) {
			for name, value := range map[string]any{"minimum": 0, "suspended": false} {
				if at(doc, "spec")[name] == nil {
					at(doc, "spec")[name] = value
				}
			}
		}, "", false},
		{"a default of false, unless an annotation says otherwise", shopPod(), func(_ *admissionv1.AdmissionRequest, doc document) {
			notes, _ := at(doc, "metadata")["annotations"].(document)
			if spec := at(doc, "spec"); spec["automountServiceAccountToken"] == nil {
				spec["automountServiceAccountToken"] = notes["example.com/region"] == "north"
			}
		}, "", true},
		{"one of eight shards for each listener, by a hash", shopGateway(nil), func(_ *admissionv1.AdmissionRequest, doc document) {
			eachOf(doc, "listeners", func(_ int, l document) {
				if name, _ := l["name"].(string); name != "" && l["shardName"] == nil {
					l["shardName"] = fmt.Sprint("shard-", sha256.Sum256([]byte(name))[0]%8)
				}
			}, "spec")
		}, "", false},
		{"a main host that must be first", shopGateway(nil), func(_ *admissionv1.AdmissionRequest, doc document) {
			hosts, _ := at(doc, "spec")["hosts"].([]any)
			if i := slices.Index(hosts, any("main.example.com")); i != 0 {
				if i > 0 {
					hosts = slices.Delete(slices.Clone(hosts), i, i+1)
				}
				at(doc, "spec")["hosts"] = slices.Insert(hosts, 0, any("main.example.com"))
			}
		}, "", false},
		{"the first listener of a custom resource", shopGateway(nil), marksFirst, "L4b treated unlike", false},
		{"the lowest free number for each listener", shopGateway(nil), withNumbers, "", false},
		{"an init container that must be first", shopPod(), initFirst(true), "L12 never settles", true},
		{"an init container that is added as the first", shopPod(), initFirst(false), "", true},
	}
}

// TestIndependentWebhooks tests the faults that webhooks of independent authors showed, and their correct counterparts.
func TestIndependentWebhooks(t *testing.T) {
	for _, c := range independentCases() {
		t.Run(c.name, c.run)
	}
}

// TestRandomValuesWithoutL3 runs the harness without L3 on two webhooks. One generates an ID and keeps it: no other law
// may fail because of the ID. The other generates a new ID in each call, so others must fail.
func TestRandomValuesWithoutL3(t *testing.T) {
	for name, keeps := range map[string]bool{"kept": true, "new in each call": false} {
		t.Run(name, func(t *testing.T) {
			var drawn atomic.Int64
			c := independentCase{sample: shopGateway(nil), edit: func(_ *admissionv1.AdmissionRequest, doc document) {
				if at(doc, "spec")["id"] == nil || !keeps {
					at(doc, "spec")["id"] = fmt.Sprintf("%x", sha256.Sum256([]byte{byte(drawn.Add(1)), byte(drawn.Load() >> 8)}))
				}
			}, onCreate: true}
			report, err := Run(t.Context(), c.subject(), Options{Samples: []runtime.Object{c.sample}, Objects: 4, Without: []Law{L3}})
			if err != nil {
				t.Fatal(err)
			}
			if report.OK() != keeps {
				t.Errorf("passes %v, want %v:\n%s", report.OK(), keeps, text(report))
			}
		})
	}
}

// TestRandomValuesAfterReplay runs the harness twice on a webhook that appends an element, and draws a new ID, in each
// call. The cases that the first run stores must not hide the ID from the second run.
func TestRandomValuesAfterReplay(t *testing.T) {
	var drawn atomic.Int64
	c := independentCase{sample: shopGateway(nil), edit: func(r *admissionv1.AdmissionRequest, doc document) {
		appendedTo("hosts", "agent.example.com", "spec")(r, doc)
		at(doc, "spec")["id"] = fmt.Sprintf("%x", sha256.Sum256([]byte{byte(drawn.Add(1)), byte(drawn.Load() >> 8)}))
	}, onCreate: true}
	store := t.TempDir()
	for run := range 2 {
		report, err := Run(t.Context(), c.subject(), Options{Samples: []runtime.Object{c.sample}, Objects: 4, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		if got := violations(report); !strings.Contains(got, "L3 varies") {
			t.Errorf("run %d: violations %q, want one of L3:\n%s", run+1, got, text(report))
		}
	}
}
