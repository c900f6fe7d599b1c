// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"net/http"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/review"
)

// The widget cases repeat some of the patterns P01 to P26 for a custom resource.

func customResourcePatterns() []Case {
	return []Case{
		onWidgets("P01 blind append of a step", blindStep).breaks("L1"),
		onWidgets("P02 blind append of store and mount", blindStore).breaks("L1"),
		onWidgets("P03 value concatenation", blindOption).breaks("L1", "L12"),
		onWidgets("P10 early return when its store exists", earlyStore).breaks("L4b"),
		widgetCase("P13 replaces the whole map", document(replacesMap("metadata"))).breaks("L10"),
		widgetCase("P16 typed round trip drops unknown fields", roundTrip[widget](annotateWidget)).breaks("L9"),
	}
}

func customResourceLookalikes() []Case {
	return []Case{
		onWidgets("P01 step if absent", stepIfAbsent),
		onWidgets("P02 ensure store, ensure mount", storeMounted),
		onWidgets("P03 option once", optionOnce),
		onWidgets("P10 store once, mount per step", storeMounted),
		widgetCase("P13 adds the key, or the map", document(addsKey("metadata"))),
		widgetCase("P16 diff before and after", diffBeforeAfter[widget](annotateWidget)),
		onWidgets("P16 typed diff", func(w *widget) error {
			annotateWidget(w)
			return nil
		}),
	}
}

// WidgetCRD returns the CustomResourceDefinition of Widget, the custom kind that the widget cases use.
func WidgetCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := new(apiextensionsv1.CustomResourceDefinition)
	if err := yaml.UnmarshalStrict([]byte(widgetCRD), crd); err != nil {
		panic(err) // cannot happen: the definition is a constant
	}
	return crd
}

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.bugs.example.com}
spec:
  group: bugs.example.com
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
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
              options: {type: string}
              retries: {type: integer, minimum: 0, maximum: 10}
              mode: {type: string, enum: [Fast, Safe]}
              memory: {x-kubernetes-int-or-string: true}
              tags: {type: object, additionalProperties: {type: string}}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
              stores:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string, minLength: 1, maxLength: 63}
                    size: {type: string}
              steps:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name, image]
                  properties:
                    name: {type: string, minLength: 1, maxLength: 63}
                    image: {type: string, minLength: 1}
                    timeout: {type: integer, minimum: 0, default: 30}
                    args: {type: array, items: {type: string}}
                    mounts:
                      type: array
                      x-kubernetes-list-type: map
                      x-kubernetes-list-map-keys: [path]
                      items:
                        type: object
                        required: [path, store]
                        properties:
                          path: {type: string, minLength: 1}
                          store: {type: string, minLength: 1}
`

// The type widget is older than the definition: it lacks the retries and the timeout of a step.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              widgetSpec `json:"spec,omitempty"`
}

type widgetSpec struct {
	Options string  `json:"options,omitempty"`
	Stores  []store `json:"stores,omitempty" patchMergeKey:"name"`
	Steps   []step  `json:"steps,omitempty" patchMergeKey:"name"`
}

type store struct {
	Name string `json:"name"`
	Size string `json:"size,omitempty"`
}

type step struct {
	Name   string      `json:"name"`
	Image  string      `json:"image"`
	Mounts []stepMount `json:"mounts,omitempty" patchMergeKey:"path"`
}

type stepMount struct {
	Path  string `json:"path"`
	Store string `json:"store"`
}

func onWidgets(name string, change func(*widget) error) Case {
	return widgetCase(name, typed(func(_ *review.Request, w *widget) error { return change(w) }))
}

func widgetCase(name string, h http.Handler) Case {
	name += " (Widget)"
	return Case{
		Name:    name,
		Webhook: registration(name, "bugs.example.com", "widgets", create, update),
		New:     func() http.Handler { return h },
	}.samples(sampleWidget())
}

func sampleWidget() *unstructured.Unstructured {
	w := new(unstructured.Unstructured)
	if err := yaml.Unmarshal([]byte(`
apiVersion: bugs.example.com/v1
kind: Widget
metadata: {name: sample, namespace: default, annotations: {team: shop}}
spec:
  memory: 1000m
  retries: 3
  extra: {anything: [1, two]}
  stores: [{name: data, size: 1.0Gi}]
  steps:
  - {name: build, image: "build:v1", timeout: 5, args: [-v], mounts: [{path: /data, store: data}]}
  - {name: check, image: "check:v1", timeout: 30}
`), w); err != nil {
		panic(err) // cannot happen: the input is a constant
	}
	return w
}

// blindStep appends its step without a check. A second call adds a second step.
func blindStep(w *widget) error {
	w.Spec.Steps = append(w.Spec.Steps, step{Name: "agent", Image: sidecar().Image})
	return nil
}

// stepIfAbsent adds its step unless the widget has a step with the same name.
func stepIfAbsent(w *widget) error {
	if slices.ContainsFunc(w.Spec.Steps, func(s step) bool { return s.Name == "agent" }) {
		return nil
	}
	return blindStep(w)
}

var (
	ownStore = store{Name: "tok", Size: "1Mi"}
	ownMount = stepMount{Path: "/tok", Store: "tok"}
)

func hasStore(w *widget) bool {
	return slices.ContainsFunc(w.Spec.Stores, func(s store) bool { return s.Name == ownStore.Name })
}

// blindStore appends its store and mounts without a check. A second call adds them again.
func blindStore(w *widget) error {
	w.Spec.Stores = append(w.Spec.Stores, ownStore)
	for i := range w.Spec.Steps {
		w.Spec.Steps[i].Mounts = append(w.Spec.Steps[i].Mounts, ownMount)
	}
	return nil
}

// earlyStore skips widgets that have its store. A step added after the first call gets no mount.
func earlyStore(w *widget) error {
	if hasStore(w) {
		return nil
	}
	return blindStore(w)
}

// storeMounted adds its store and, in each step, its mount. It adds each only if it is missing.
func storeMounted(w *widget) error {
	for _, s := range w.Spec.Stores {
		if s.Name == ownStore.Name && s != ownStore {
			return denial("the store " + s.Name + " is reserved")
		}
	}
	if !hasStore(w) {
		w.Spec.Stores = append(w.Spec.Stores, ownStore)
	}
	for i := range w.Spec.Steps {
		if err := mountStore(&w.Spec.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

func mountStore(s *step) error {
	for _, m := range s.Mounts {
		if m.Path == ownMount.Path && m != ownMount {
			return denial("the path " + m.Path + " is reserved")
		}
		if m == ownMount {
			return nil
		}
	}
	s.Mounts = append(s.Mounts, ownMount)
	return nil
}

// blindOption appends its option without a check. A second call appends it again.
func blindOption(w *widget) error {
	w.Spec.Options = extended(w.Spec.Options, "-agent")
	return nil
}

// optionOnce adds its option only if the value does not have it.
func optionOnce(w *widget) error {
	if slices.Contains(strings.Fields(w.Spec.Options), "-agent") {
		return nil
	}
	return blindOption(w)
}

// annotateWidget sets one annotation to a constant.
func annotateWidget(w *widget) { setKey(&w.Annotations, "agent/ok", "yes") }
