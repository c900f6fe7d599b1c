// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"net/http"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/review"
)

// A TriggeredCase is a correct webhook that acts only on objects with a certain part.
type TriggeredCase struct {
	Case
	// Trigger is the condition that the harness must report for the sample.
	Trigger string
	// Unchanged are samples that the webhook does not change. They are for a kind whose objects the harness does not
	// generate.
	Unchanged []runtime.Object
	// Findable is set if the harness finds the trigger without a sample.
	Findable bool
}

// Triggered returns the webhooks T01 to T12, each with a sample that it changes. The code of each webhook is in its own
// function literal, as in the tests of users, so that the harness can read the source of that webhook alone.
func Triggered() []TriggeredCase {
	const domain = "example.com/"
	note := func(key, value string) *corev1.Pod { return podWith(map[string]string{key: value}, nil) }
	label := func(key, value string) *corev1.Pod { return podWith(nil, map[string]string{key: value}) }
	return []TriggeredCase{
		{Case: triggered("T01 an annotation with a value", note("audit.example.com/inject", "enabled"), func() http.Handler {
			return typed(func(_ *review.Request, p *corev1.Pod) error {
				return marked(p, p.Annotations["audit.example.com/inject"] == "enabled")
			})
		}), Trigger: `metadata.annotations[audit.example.com/inject] is "enabled"`, Findable: true},
		{Case: triggered("T02 an annotation with any value", note("audit.example.com/trail", "db"), func() http.Handler {
			return typed(func(_ *review.Request, p *corev1.Pod) error {
				_, ok := p.Annotations["audit.example.com/trail"]
				return marked(p, ok)
			})
		}), Trigger: `metadata.annotations[audit.example.com/trail] is set`, Findable: true},
		{Case: triggered("T03 a number in an annotation", note("proxy.example.com/port", "15001"), func() http.Handler {
			return typed(func(_ *review.Request, p *corev1.Pod) error {
				_, err := strconv.Atoi(p.Annotations["proxy.example.com/port"])
				return marked(p, err == nil)
			})
		}), Trigger: `metadata.annotations[proxy.example.com/port] is set to a value such as "15001" or "15002"`, Findable: true},
		{Case: triggered("T04 a label and an annotation", podWith(map[string]string{"flags.example.com/mode": "canary"}, map[string]string{"tier": "edge"}), func() http.Handler {
			return typed(func(_ *review.Request, p *corev1.Pod) error {
				return marked(p, p.Labels["tier"] == "edge" && p.Annotations["flags.example.com/mode"] == "canary")
			})
		}), Trigger: `metadata.annotations[flags.example.com/mode] is "canary" and metadata.labels.tier is "edge"`, Findable: true},
		{Case: triggered("T05 a key from two constants", note("example.com/guard", "strict"), func() http.Handler {
			return typed(func(_ *review.Request, p *corev1.Pod) error {
				switch p.Annotations[domain+"guard"] {
				case "strict", "lax":
					return marked(p, true)
				}
				return nil
			})
		}), Trigger: `metadata.annotations[example.com/guard] is "strict" or "lax"`},
		{Case: triggered("T06 a label of the objectSelector", label("mesh", "on"), func() http.Handler {
			return typed(func(_ *review.Request, p *corev1.Pod) error { return marked(p, true) })
		}).registered(onlyLabelled("mesh", "on")), Trigger: `metadata.labels.mesh is "on"`, Findable: true},
		{Case: triggered("T07 a matchCondition", note("a.example.org/zone", "west"), func() http.Handler {
			return typed(func(_ *review.Request, p *corev1.Pod) error { return marked(p, true) })
		}).registered(func(w *admissionregistrationv1.MutatingWebhook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "zone", Expression: `has(object.metadata.annotations) && 'a.example.org/zone' in object.metadata.annotations && object.metadata.annotations['a.example.org/zone'] == 'west'`}}
		}), Trigger: `metadata.annotations[a.example.org/zone] is "west"`, Findable: true},
		{Case: triggered("T08 a denial that names its label", label("cost.example.com/center", "c7"), func() http.Handler {
			return hidden("cost.example.com/center must be set")
		}), Trigger: `metadata.labels[cost.example.com/center] is set`, Findable: true},
		{Case: triggered("T09 a name from its own", note("t09-a-name-from-its-own.bugs.example.com/inject", "true"), func() http.Handler {
			return fromParts(func(p *corev1.Pod) bool {
				for key, value := range p.Annotations {
					if strings.HasPrefix(key, "t09") && strings.HasSuffix(key, "/inject") && value == "true" {
						return true
					}
				}
				return false
			})
		}), Trigger: `metadata.annotations[t09-a-name-from-its-own.bugs.example.com/inject] is "true"`},
		{Case: triggered("T10 the image of a container", imageOf("internal.example.com/tools/app:1"), func() http.Handler {
			return typed(func(_ *review.Request, p *corev1.Pod) error {
				return marked(p, len(p.Spec.Containers) > 0 && strings.HasPrefix(p.Spec.Containers[0].Image, "internal.example.com/tools/"))
			})
		}), Trigger: `spec.containers[name=app].image is "internal.example.com/tools/app:1"`, Findable: true},
		{Case: triggered("T11 unless it is switched off", note("on.example.com/inject", "true"), func() http.Handler {
			return typed(func(_ *review.Request, p *corev1.Pod) error {
				if p.Annotations["on.example.com/skip"] != "" || p.Annotations["on.example.com/inject"] != "true" {
					return nil
				}
				return marked(p, true)
			})
		}), Trigger: `metadata.annotations[on.example.com/inject] is "true"`, Findable: true},
		{Case: onTriggered("T12 the template of a Deployment", deploymentWith("logs.example.com/collect", "all"), func() http.Handler {
			return typed(func(_ *review.Request, d *appsv1.Deployment) error {
				if d.Spec.Template.Annotations["logs.example.com/collect"] != "all" {
					return nil
				}
				if d.Spec.Template.Labels == nil {
					d.Spec.Template.Labels = map[string]string{}
				}
				d.Spec.Template.Labels["marked"] = "yes"
				return nil
			})
		}), Trigger: `spec.template.metadata.annotations[logs.example.com/collect] is "all"`, Findable: true},
	}
}

// triggeredPatterns are broken webhooks that act only on some objects, and have no samples.
func triggeredPatterns() []Case {
	return []Case{
		podCase("T21 appends a container to annotated Pods", func() http.Handler {
			return pods(func(_ *review.Request, p *corev1.Pod) error {
				if p.Annotations["tracer.example.com/attach"] == "yes" {
					p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "tracer-" + strconv.Itoa(len(p.Spec.Containers)), Image: "tracer:v1"})
				}
				return nil
			})
		}).breaks("L1"),
	}
}

// triggeredLookalikes are correct webhooks that act only on some objects, and have no samples.
func triggeredLookalikes() []Case {
	return []Case{
		podCase("T21 labels annotated Pods", func() http.Handler {
			return pods(func(_ *review.Request, p *corev1.Pod) error {
				return marked(p, p.Annotations["tracer.example.com/attach"] == "yes")
			})
		}),
	}
}

// triggered returns a case of a webhook for the creation of Pods.
func triggered(name string, sample *corev1.Pod, newHandler func() http.Handler) Case {
	return Case{Name: name, Webhook: registration(name, "", "pods", create), New: newHandler, Samples: []runtime.Object{sample}}
}

func onTriggered(name string, sample *appsv1.Deployment, newHandler func() http.Handler) Case {
	return Case{Name: name, Webhook: registration(name, "apps", "deployments", create), New: newHandler, Samples: []runtime.Object{sample}}
}

// marked labels the Pod if on is set.
func marked(p *corev1.Pod, on bool) error {
	if !on {
		return nil
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels["marked"] = "yes"
	return nil
}

// hidden returns a handler that changes Pods with a label and denies others with message. The first word of message is
// the key of the label.
func hidden(message string) http.Handler {
	return typed(func(_ *review.Request, p *corev1.Pod) error {
		key, _, _ := strings.Cut(message, " ")
		if p.Labels[key] == "" {
			return denial(message)
		}
		return marked(p, true)
	})
}

func fromParts(on func(p *corev1.Pod) bool) http.Handler {
	return typed(func(_ *review.Request, p *corev1.Pod) error { return marked(p, on(p)) })
}

// podWith returns a Pod with annotations and labels, among them some that no webhook reads.
func podWith(annotations, labels map[string]string) *corev1.Pod {
	p := imageOf("localhost/app:1")
	for key, value := range annotations {
		p.Annotations[key] = value
	}
	for key, value := range labels {
		p.Labels[key] = value
	}
	return p
}

func imageOf(image string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: typeOf("v1", "Pod"),
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop", Namespace: "default", Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{"notes": "none", "owner": "shop"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "app", Image: image, Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"}}},
			{Name: "db", Image: "localhost/db:1", Args: []string{"-v"}},
		}},
	}
}

func deploymentWith(key, value string) *appsv1.Deployment {
	labels := map[string]string{"app": "shop"}
	return &appsv1.Deployment{
		TypeMeta: typeOf("apps/v1", "Deployment"), ObjectMeta: metaOf("shop"),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{key: value, "notes": "none"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "localhost/app:1"}}},
			},
		},
	}
}
