// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// C47 to C60: correct webhooks for custom resources, and correct webhooks with unusual implementations.

func correctCustomResources() []Case {
	return []Case{
		widgetCase("C47 defaults scalars, without types", mapped(widgetDefaults)),
		widgetCase("C48 adds an argument to each step, operations by hand", byHand(tracedSteps)),
		widgetCase("C49 typed defaults, with quantities", typed(sizedWidget)),
		widgetCase("C50 adds its finalizer on CREATE", mapped(addsFinalizerOnCreate)),
		kindCase("C51 gateway: adds a secure listener", "net.example.com/v1alpha1", "gateways", mapped(secureGateway)).samples(sampleGateway()),
		kindCase("C52 gateway: typed defaults of routes", "net.example.com/v1alpha1", "gateways", typed(gatewayTimeouts)).samples(sampleGateway()),
		onDeployments("C53 mirrored images, v1 only", mirrored).registered(onlyVersion("v1")),
		registersOutside(),
		assignsSlots(),
		onPods("C56 records the user who created it", recordsCreator),
		podCase("C57 renames an old annotation, declared", ofHandler(byHand(renamesAnnotation))).
			samples(simplePod(map[string]string{legacyKey: "on"})).
			except("/metadata/annotations/"+pointerToken(legacyKey), "", "has another name now"),
		onPods("C58 denies host paths, mounts certificates in the others", noHostPaths),
		envelopeCase("C59 warns and audits", warnsAndAudits),
		twoKinds(),
	}
}

// widgetDefaults sets scalar fields that are missing.
var widgetDefaults = changes(func(doc tree) {
	spec := at(doc, "spec")
	for name, value := range (tree{"retries": 3, "mode": "Safe", "options": "-default"}) {
		if _, ok := spec[name]; !ok {
			spec[name] = value
		}
	}
})

// tracedSteps adds an argument to each step that lacks it. It adds the list of arguments only where the list is
// missing.
func tracedSteps(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	var ops []op
	for i, s := range objectsAt(doc, "spec", "steps") {
		path := "/spec/steps/" + strconv.Itoa(i) + "/args"
		args, ok := s["args"].([]any)
		switch {
		case slices.Contains(args, any("--trace")):
		case ok:
			ops = append(ops, op{Op: "add", Path: path + "/-", Value: "--trace"})
		default:
			ops = append(ops, op{Op: "add", Path: path, Value: []string{"--trace"}})
		}
	}
	return ops, nil
}

// The type newWidget has fields that the type widget lacks.
type newWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Memory *intstr.IntOrString `json:"memory,omitempty"`
		Tags   map[string]string   `json:"tags,omitempty"`
		Mode   string              `json:"mode,omitempty"`
		Stores []struct {
			Name string `json:"name"`
			Size string `json:"size,omitempty"`
		} `json:"stores,omitempty" patchMergeKey:"name"`
	} `json:"spec,omitempty"`
}

// sizedWidget sets typed fields that are missing, among them a quantity.
func sizedWidget(r *review.Request, w *newWidget) error {
	if w.Spec.Memory == nil {
		w.Spec.Memory = ptr.To(intstr.FromString("256Mi"))
	}
	setKey(&w.Spec.Tags, "namespace", r.Namespace)
	for i := range w.Spec.Stores {
		if w.Spec.Stores[i].Size == "" {
			w.Spec.Stores[i].Size = "1Gi"
		}
	}
	return nil
}

// addsFinalizerOnCreate adds its finalizer on CREATE only, so a deletion can finish.
func addsFinalizerOnCreate(r *review.Request, doc tree) error {
	if r.Operation != admissionv1.Create {
		return nil
	}
	metadata := at(doc, "metadata")
	if list, _ := metadata["finalizers"].([]any); !slices.Contains(list, any(ownFinalizer)) {
		metadata["finalizers"] = append(list, ownFinalizer)
	}
	return nil
}

func sampleGateway() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: tree{
		"apiVersion": "net.example.com/v1alpha1", "kind": "Gateway", "metadata": tree{"name": "front", "namespace": "default"},
		"spec": tree{
			"listeners": []any{tree{"name": "http", "port": int64(80), "tls": tree{"mode": "None"}}},
			"routes":    []any{tree{"name": "root", "match": tree{"path": "/"}, "backends": []any{tree{"name": "web", "weight": int64(1)}}}},
			"paused":    false, "ratio": 1.5,
		},
	}}
}

// secureGateway appends its listener unless the gateway has a listener with the same name.
var secureGateway = changes(func(doc tree) {
	spec := at(doc, "spec")
	for _, l := range objectsAt(doc, "spec", "listeners") {
		if l["name"] == "https" {
			return
		}
	}
	list, _ := spec["listeners"].([]any)
	spec["listeners"] = append(list, tree{"name": "https", "port": 443, "tls": tree{"mode": "Terminate"}})
})

// The type gateway has only the fields that the webhook needs.
type gateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Routes []struct {
			Name    string  `json:"name"`
			Timeout *string `json:"timeout,omitempty"`
			Match   *struct {
				Headers map[string]string `json:"headers,omitempty"`
			} `json:"match,omitempty"`
		} `json:"routes,omitempty" patchMergeKey:"name"`
	} `json:"spec,omitempty"`
}

// gatewayTimeouts sets missing timeouts through a type that lacks most fields. Those fields stay.
var gatewayTimeouts = changes(func(g *gateway) {
	for i := range g.Spec.Routes {
		route := &g.Spec.Routes[i]
		if route.Timeout == nil {
			route.Timeout = ptr.To("15s")
		}
		if route.Match != nil {
			setKey(&route.Match.Headers, "x-gateway", "front")
		}
	}
})

// registersOutside returns a case that writes each Service to an external registry, except in dry
// runs.
func registersOutside() Case {
	stored := &secrets{writes: map[string]int{}}
	c := noneOnDryRun(onKind("C54 Service: registered outside, except in dry runs", "v1", "services", func(r *review.Request, s *corev1.Service) error {
		setKey(&s.Annotations, "registry.example.com/zone", "zone-"+r.Namespace)
		if !r.DryRun {
			stored.write("zone-" + r.Namespace)
		}
		return nil
	}))
	c.Observe = stored.snapshot
	return c
}

// assignsSlots returns a case that gives each Pod the next slot, once. An exception of the case declares that the slot
// may differ.
func assignsSlots() Case {
	return podCase("C55 takes a slot once, declared", func() http.Handler {
		var last atomic.Int64
		return pods(func(_ *review.Request, p *corev1.Pod) error {
			if _, ok := p.Labels["example.com/slot"]; !ok {
				setKey(&p.Labels, "example.com/slot", strconv.FormatInt(last.Add(1)%64, 10))
			}
			return nil
		})
	}).except("/metadata/labels/example.com~1slot", "", "slots are given in turn")
}

// recordsCreator records the user of the first request and keeps it.
func recordsCreator(r *review.Request, p *corev1.Pod) error {
	if _, ok := p.Annotations["example.com/created-by"]; !ok {
		annotate(p, "example.com/created-by", r.UserInfo.Username)
	}
	return nil
}

// renamesAnnotation renames an annotation. An exception of the case declares that the old name disappears.
func renamesAnnotation(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	const key = "sidecar.example.com/inject"
	annotations, _ := member[tree](doc, "metadata", "annotations")
	if annotations[legacyKey] == nil {
		return nil, nil
	}
	if annotations[key] != nil {
		return []op{{Op: "remove", Path: "/metadata/annotations/" + pointerToken(legacyKey)}}, nil
	}
	return []op{{Op: "move", From: "/metadata/annotations/" + pointerToken(legacyKey), Path: "/metadata/annotations/" + pointerToken(key)}}, nil
}

// noHostPaths denies Pods with hostPath volumes, and mounts certificates in all other Pods.
func noHostPaths(r *review.Request, p *corev1.Pod) error {
	for _, v := range p.Spec.Volumes {
		if v.HostPath != nil {
			return denial("volume " + v.Name + " is a path of the node")
		}
	}
	return certsMounted(r, p)
}

// warnsAndAudits adds a warning and an audit annotation to the response. They do not change the
// object.
func warnsAndAudits(e *envelope) {
	e.Response["warnings"] = []string{"example.com/v1 Agents are deprecated"}
	e.Response["auditAnnotations"] = map[string]string{"agent": "mounted"}
}

// twoKinds returns a case that serves Pods and Deployments. It caches settings by namespace, because
// they depend on nothing else.
func twoKinds() Case {
	c := podCase("C60 Pods and Deployments, settings from a cache", func() http.Handler {
		var settings sync.Map
		ensure := func(r *review.Request, p *corev1.Pod) error {
			level, _ := settings.LoadOrStore(r.Namespace, strings.ToUpper("info-"+r.Namespace))
			for _, c := range everyContainer(p) {
				ensureEnv(c, "LOG_LEVEL", level.(string))
			}
			return nil
		}
		return handler(func(r *review.Request) (patch.Patch, error) {
			var kind struct{ Kind string }
			if err := json.Unmarshal(r.Object, &kind); err != nil {
				return nil, err
			}
			if kind.Kind == "Deployment" {
				return deployments(ensure)(r)
			}
			return pods(ensure)(r)
		})
	})
	rule := c.Webhook.Rules[0]
	rule.APIGroups, rule.Resources = []string{"apps"}, []string{"deployments"}
	rule.Operations = append(slices.Clone(rule.Operations), update)
	c.Webhook.Rules = append(c.Webhook.Rules, rule)
	return c
}
