// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// shipCRD is the definition in the cluster. It has fields that [Ship] lacks.
const shipCRD = `
metadata: {name: ships.newer.example.com}
spec:
  group: newer.example.com
  scope: Namespaced
  names: {plural: ships, singular: ship, kind: Ship, listKind: ShipList}
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
              draught: {type: integer}
              insurance: {type: object, x-kubernetes-preserve-unknown-fields: true}
              crew:
                type: array
                items:
                  type: object
                  properties:
                    name: {type: string}
                    rank: {type: string}
                    languages: {type: array, items: {type: string}}
                    cabin:
                      type: object
                      properties: {deck: {type: integer}, keycard: {type: string}}
              holds:
                type: object
                additionalProperties:
                  type: object
                  properties: {tons: {type: integer}, celsius: {type: integer}}
`

// Ship is the type that the webhook was built with. It lacks languages, key cards, celsius and
// insurance.
type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShipSpec `json:"spec"`
}

// ShipSpec is the spec of a Ship.
type ShipSpec struct {
	Draught int             `json:"draught,omitempty"`
	Crew    []Sailor        `json:"crew,omitempty"`
	Holds   map[string]Hold `json:"holds,omitempty"`
}

// A Sailor is a member of the crew.
type Sailor struct {
	Name  string `json:"name"`
	Rank  string `json:"rank,omitempty"`
	Cabin *Cabin `json:"cabin,omitempty"`
}

// A Cabin is the cabin of a Sailor.
type Cabin struct {
	Deck int `json:"deck,omitempty"`
}

// A Hold is a cargo hold of a Ship.
type Hold struct {
	Tons int `json:"tons,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *Ship) DeepCopyObject() runtime.Object {
	copied := *s
	copied.Spec.Crew = slices.Clone(s.Spec.Crew)
	return &copied
}

// crewOnly is a projection of Ship with only the crew.
type crewOnly struct {
	Spec struct {
		Crew []Sailor `json:"crew,omitempty"`
	} `json:"spec"`
}

// JSON of the sailors in the user's request, with fields that Sailor lacks.
const (
	ana = `{"name":"ana","rank":"captain","languages":["pt","en"],"cabin":{"deck":1,"keycard":"A1"}}`
	bo  = `{"name":"bo","rank":"cook","languages":["da"],"cabin":{"deck":2,"keycard":"B2"}}`
	cy  = `{"name":"cy","rank":"mate","cabin":{"deck":2,"keycard":"C3"}}`
	dee = `{"name":"dee","rank":"pilot"}` // the sailor that hooks add
	// fittings are the other fields of the spec.
	fittings = `"draught":7,"insurance":{"by":{"name":"lloyd"}},"holds":{"fore":{"tons":10,"celsius":4},"aft":{"tons":20,"celsius":-18}}`
)

func crew(sailors ...string) string {
	return `{"crew":[` + strings.Join(sailors, ",") + `],` + fittings + `}`
}

// crewChanges are changes that a handler makes to the list of sailors, each with the spec that must result.
var crewChanges = []struct {
	name string
	edit func([]Sailor) []Sailor
	want string
}{
	{"an element is inserted before the others", func(s []Sailor) []Sailor { return append([]Sailor{{Name: "dee", Rank: "pilot"}}, s...) }, crew(dee, ana, bo, cy)},
	{"an element is inserted between the others", func(s []Sailor) []Sailor { return slices.Insert(s, 1, Sailor{Name: "dee", Rank: "pilot"}) }, crew(ana, dee, bo, cy)},
	{"an element is appended", func(s []Sailor) []Sailor { return append(s, Sailor{Name: "dee", Rank: "pilot"}) }, crew(ana, bo, cy, dee)},
	{"the first element is removed", func(s []Sailor) []Sailor { return s[1:] }, crew(bo, cy)},
	{"an element in the middle is removed", func(s []Sailor) []Sailor { return slices.Delete(s, 1, 2) }, crew(ana, cy)},
	{"the order is reversed", func(s []Sailor) []Sailor { slices.Reverse(s); return s }, crew(cy, bo, ana)},
	{"the list is sorted", func(s []Sailor) []Sailor {
		slices.SortFunc(s, func(a, b Sailor) int { return cmp.Compare(b.Rank, a.Rank) })
		return s
	}, crew(cy, bo, ana)},
	{"an element is changed", func(s []Sailor) []Sailor { s[1].Rank = "chef"; return s }, crew(ana, strings.Replace(bo, "cook", "chef", 1), cy)},
	{"a nested field of an element is changed", func(s []Sailor) []Sailor { s[2].Cabin.Deck = 5; return s }, crew(ana, bo, strings.Replace(cy, `"deck":2`, `"deck":5`, 1))},
	{"elements are removed, moved, changed and inserted", func(s []Sailor) []Sailor {
		mate := s[2]
		mate.Rank = "captain"
		return []Sailor{{Name: "dee", Rank: "pilot"}, mate, s[1]}
	}, crew(dee, strings.Replace(cy, "mate", "captain", 1), bo)},
	{"the list is built again from its values", func(s []Sailor) []Sailor {
		var anew []Sailor
		for _, one := range s {
			anew = append(anew, Sailor{Name: one.Name, Rank: strings.ToUpper(one.Rank), Cabin: &Cabin{Deck: one.Cabin.Deck}})
		}
		return anew
	}, strings.NewReplacer("captain", "CAPTAIN", "cook", "COOK", "mate", "MATE").Replace(crew(ana, bo, cy))},
}

var ships dynamic.NamespaceableResourceInterface

// createShip creates a ship and returns the stored object.
func createShip(ctx context.Context, namespace string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(json.Unmarshal([]byte(`{"apiVersion":"newer.example.com/v1","kind":"Ship","metadata":{"name":"one"},"spec":`+crew(ana, bo, cy)+`}`), &object.Object)).To(Succeed())
	_, err := ships.Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	stored, err := ships.Namespace(namespace).Get(ctx, "one", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return stored
}

// spec returns the spec in JSON.
func spec(object *unstructured.Unstructured) []byte {
	GinkgoHelper()
	encoded, err := json.Marshal(object.Object["spec"])
	Expect(err).NotTo(HaveOccurred())
	return encoded
}

// installShipwright registers a mutating hook for the ships of a namespace.
func installShipwright[T any](ctx context.Context, version, namespace string, mutate func(*webhook.Request[T]) error) {
	GinkgoHelper()
	install(ctx, webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: "shipwright.example.com", NamespaceSelector: only(namespace), AdmissionReviewVersions: []string{version},
		Rules: webhook.Rules(webhook.OnWrite("newer.example.com", "v1", "ships")),
	}, func(_ context.Context, req *webhook.Request[T]) error { return mutate(req) }))
}

var _ = Describe("fields that the type of the hook lacks", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.UnmarshalStrict([]byte(shipCRD), crd)).To(Succeed())
		_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
		Expect(err).NotTo(HaveOccurred())
		client, err := dynamic.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		ships = client.Resource(schema.GroupVersionResource{Group: "newer.example.com", Version: "v1", Resource: "ships"})
	})

	for _, version := range reviewVersions {
		Context("with "+version+" reviews", func() {
			var ns string
			BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

			for _, c := range crewChanges {
				It("stay with their element in a typed custom resource when "+c.name, func(ctx context.Context) {
					installShipwright(ctx, version, ns, func(req *webhook.Request[Ship]) error {
						req.Object.Spec.Crew = c.edit(req.Object.Spec.Crew)
						return nil
					})
					Expect(spec(createShip(ctx, ns))).To(MatchJSON(c.want))
				})

				It("stay with their element in a projection when "+c.name, func(ctx context.Context) {
					installShipwright(ctx, version, ns, func(req *webhook.Request[crewOnly]) error {
						req.Object.Spec.Crew = c.edit(req.Object.Spec.Crew)
						return nil
					})
					Expect(spec(createShip(ctx, ns))).To(MatchJSON(c.want))
				})
			}

			It("stay with their map entry", func(ctx context.Context) {
				installShipwright(ctx, version, ns, func(req *webhook.Request[Ship]) error {
					req.Object.Spec.Holds = map[string]Hold{"aft": {Tons: 21}, "mid": {Tons: 1}}
					return nil
				})
				Expect(spec(createShip(ctx, ns))).To(MatchJSON(strings.Replace(crew(ana, bo, cy),
					`"fore":{"tons":10,"celsius":4},"aft":{"tons":20,"celsius":-18}`, `"mid":{"tons":1},"aft":{"tons":21,"celsius":-18}`, 1)))
			})

			It("stay when the handler replaces the object with a copy", func(ctx context.Context) {
				installShipwright(ctx, version, ns, func(req *webhook.Request[Ship]) error {
					req.Object = &Ship{ObjectMeta: req.Object.ObjectMeta, Spec: req.Object.Spec}
					req.Object.Spec.Draught = 8
					return nil
				})
				Expect(spec(createShip(ctx, ns))).To(MatchJSON(strings.Replace(crew(ana, bo, cy), `"draught":7`, `"draught":8`, 1)))
			})

			It("stay in an update", func(ctx context.Context) {
				installShipwright(ctx, version, ns, func(req *webhook.Request[Ship]) error {
					slices.Reverse(req.Object.Spec.Crew)
					return nil
				})
				stored := createShip(ctx, ns)
				Expect(spec(stored)).To(MatchJSON(crew(cy, bo, ana)))
				stored.SetLabels(map[string]string{"example.com/owner": "red"})
				updated, err := ships.Namespace(ns).Update(ctx, stored, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(spec(updated)).To(MatchJSON(crew(ana, bo, cy)))
			})

			It("cause no patch when the handler changes nothing", func(ctx context.Context) {
				installShipwright(ctx, version, ns, func(req *webhook.Request[Ship]) error {
					req.Object = req.Object.DeepCopyObject().(*Ship)
					return nil
				})
				Expect(spec(createShip(ctx, ns))).To(MatchJSON(crew(ana, bo, cy)))
				annotations := audited(ctx, "create", ns, "one")
				Expect(mutations(annotations)).To(ConsistOf("round_0_index_0 shipwright.example.com false"))
				Expect(records(annotations, patchKey)).To(BeEmpty())
			})

			It("are removed with the element that the handler removes, and with no other", func(ctx context.Context) {
				installShipwright(ctx, version, ns, func(req *webhook.Request[Ship]) error {
					req.Object.Spec.Crew, req.Object.Spec.Holds = nil, nil
					return nil
				})
				Expect(spec(createShip(ctx, ns))).To(MatchJSON(`{"draught":7,"insurance":{"by":{"name":"lloyd"}}}`))
			})

			It("are removed with an element that the handler renames, because the merge key differs", func(ctx context.Context) {
				installShipwright(ctx, version, ns, func(req *webhook.Request[Ship]) error {
					req.Object.Spec.Crew[0].Name = "eve"
					return nil
				})
				Expect(spec(createShip(ctx, ns))).To(MatchJSON(crew(`{"name":"eve","rank":"captain","cabin":{"deck":1}}`, bo, cy)))
			})

			It("are listed by UnknownFields", func(ctx context.Context) {
				var listed []string
				installShipwright(ctx, version, ns, func(req *webhook.Request[Ship]) error {
					listed = req.UnknownFields()
					return nil
				})
				createShip(ctx, ns)
				Expect(listed).To(ConsistOf(
					"spec.crew[0].languages", "spec.crew[0].cabin.keycard", "spec.crew[1].languages", "spec.crew[1].cabin.keycard",
					"spec.crew[2].cabin.keycard", "spec.insurance", "spec.holds.fore.celsius", "spec.holds.aft.celsius"))
			})

			It("stay with their container in a projection of a Pod", func(ctx context.Context) {
				type image struct {
					Name  string `json:"name"`
					Image string `json:"image"`
				}
				type images struct {
					Spec struct {
						Containers []image `json:"containers"`
					} `json:"spec"`
				}
				install(ctx, webhook.Mutating(admissionregistrationv1.MutatingWebhook{
					Name: "images.example.com", NamespaceSelector: only(ns), AdmissionReviewVersions: []string{version},
					Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
				}, func(_ context.Context, req *webhook.Request[images]) error {
					list := req.Object.Spec.Containers
					list[1].Image = "example.com/metrics:2"
					req.Object.Spec.Containers = []image{{Name: "proxy", Image: "example.com/proxy:1"}, list[2], list[1]}
					return nil
				}))
				sent := pod(ns, "one")
				sent.Spec.Containers = append(sent.Spec.Containers,
					corev1.Container{Name: "metrics", Image: "example.com/metrics:1", Env: []corev1.EnvVar{{Name: "PORT", Value: "9090"}}},
					corev1.Container{Name: "logs", Image: "example.com/logs:1", Ports: []corev1.ContainerPort{{ContainerPort: 24224, Protocol: corev1.ProtocolTCP}}, WorkingDir: "/var/log"})
				created, err := clients.CoreV1().Pods(ns).Create(ctx, sent, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				got := created.Spec.Containers
				Expect(got).To(HaveLen(3))
				Expect([]string{got[0].Image, got[1].Image, got[2].Image}).To(Equal([]string{"example.com/proxy:1", "example.com/logs:1", "example.com/metrics:2"}))
				Expect(got[0].Env).To(BeEmpty())
				Expect(got[1].Ports).To(Equal(sent.Spec.Containers[2].Ports))
				Expect(got[1].WorkingDir).To(Equal("/var/log"))
				Expect(got[1].Env).To(BeEmpty())
				Expect(got[2].Env).To(Equal(sent.Spec.Containers[1].Env))
				Expect(got[2].Ports).To(BeEmpty())
			})
		})
	}
})
