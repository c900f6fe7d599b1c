// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// B49 to B60 and B63 to B70: broken webhooks for kinds other than Pods.

func otherKinds() []Case {
	return []Case{
		onKind("B49 Service: keeps one port per number", "v1", "services", servicePortsByNumber).breaks("L10", "L5"),
		onKind("B50 Ingress: adds TLS at the first call only", "networking.k8s.io/v1", "ingresses", addsTLSOnce).
			samples(sampleIngress()).breaks("L4b"),
		onKind("B51 Deployment: changes a label that the selector may use", "apps/v1", "deployments", nameLabel).breaks("L1", "L5"),
		onKind("B52 Deployment: sets maxUnavailable to 0 beside a maxSurge of 0", "apps/v1", "deployments", setsNoneUnavailable).breaks("L1", "L5"),
		onKind("B53 StatefulSet: labels its claims, also in updates", "apps/v1", "statefulsets", claimsLabelled).
			samples(statefulSetWithClaims()).breaks("L6"),
		onKind("B54 Job: changes the template, also in updates", "batch/v1", "jobs", jobTraced).breaks("L6"),
		onKind("B55 ConfigMap: changes immutable data", "v1", "configmaps", immutableData).breaks("L6"),
		onKind("B56 Namespace: team from the second part of the name", "v1", "namespaces", teamFromName).
			samples(sampleNamespace("team-shop")).breaks("L2"),
		onKind("B57 PodDisruptionBudget: sets minAvailable beside maxUnavailable", "policy/v1", "poddisruptionbudgets", addsMinAvailable).
			samples(sampleBudget()).breaks("L1", "L5"),
		widgetCase("B58 loses explicit zeros", roundTrip[countingWidget](func(w *countingWidget) {
			setKey(&w.Spec.Tags, "counted", "yes")
		})).samples(zeroWidget()).breaks("L10", "L9", "L5"),
		widgetCase("B59 denies updates during deletion", typed(frozenWhenDeleted)).breaks("L6"),
		oneVersion(),
		onKind("B63 HorizontalPodAutoscaler: at least two replicas", "autoscaling/v2", "horizontalpodautoscalers", atLeastTwo).
			samples(sampleAutoscaler()).breaks("L1", "L5"),
		onKind("B64 ServiceAccount: looks for its pull secret in the wrong list", "v1", "serviceaccounts", checksWrongList).breaks("L1"),
		onKind("B65 PersistentVolumeClaim: adds a selector, also in updates", "v1", "persistentvolumeclaims", tierSelected).
			samples(sampleClaim()).breaks("L6"),
		widgetCase("B66 decodes memory as a string", typed(memoryAsString)).samples(sampleWidget(), numberWidget()).breaks("L2"),
		widgetCase("B67 records the operation", mapped(recordsOperation)).breaks("L6"),
		kindCase("B68 gateway: rewrites numbers as floats", "net.example.com/v1alpha1", "gateways", byHand(floatNumbers)).
			samples(sampleGateway()).breaks("L10", "L9"),
		kindCase("B69 Job: adds a failure policy beside OnFailure", "batch/v1", "jobs", typed(addsFailurePolicy)).breaks("L1", "L5"),
		kindCase("B70 CronJob: replaces the labels of the template", "batch/v1", "cronjobs", byHand(templateLabels)).breaks("L10", "L5"),
	}
}

// servicePortsByNumber keeps only one port for each number, although a Service may use a number for both TCP and UDP.
var servicePortsByNumber = changes(func(s *corev1.Service) {
	s.Spec.Ports = byName(s.Spec.Ports, func(p corev1.ServicePort) int32 { return p.Port })
	setKey(&s.Annotations, "example.com/ports", "checked")
})

// addsTLSOnce adds TLS for all hosts, unless the Ingress already has TLS for any host. A host added later gets none.
var addsTLSOnce = changes(func(i *networkingv1.Ingress) {
	if len(i.Spec.TLS) > 0 {
		return
	}
	var hosts []string
	for _, rule := range i.Spec.Rules {
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	if len(hosts) > 0 {
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: hosts, SecretName: "wildcard"}}
	}
})

// nameLabel overwrites labels of the template that the selector may use. The Deployment is then
// invalid.
var nameLabel = changes(func(d *appsv1.Deployment) {
	if len(d.Name) <= 63 && !strings.Contains(d.Name, ".") {
		for _, key := range []string{"app", "app.kubernetes.io/name"} {
			if _, ok := d.Spec.Template.Labels[key]; ok {
				d.Spec.Template.Labels[key] = d.Name
			}
		}
	}
	setKey(&d.Spec.Template.Labels, "example.com/named", "yes")
})

// setsNoneUnavailable sets maxUnavailable to 0, which is invalid together with a maxSurge of 0.
var setsNoneUnavailable = changes(func(d *appsv1.Deployment) {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return
	}
	if d.Spec.Strategy.RollingUpdate == nil {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
	}
	d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0))
})

func statefulSetWithClaims() *appsv1.StatefulSet {
	claim := *sampleClaim()
	claim.TypeMeta, claim.Namespace = typeOf("", ""), ""
	return &appsv1.StatefulSet{
		TypeMeta: typeOf("apps/v1", "StatefulSet"), ObjectMeta: metaOf("db"),
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "db", Selector: sampleBudget().Spec.Selector, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
			Template: corev1.PodTemplateSpec{ObjectMeta: labelledPod("app", "web").ObjectMeta, Spec: simplePod(nil).Spec},
		},
	}
}

// claimsLabelled labels the volume claim templates, which are immutable in updates.
var claimsLabelled = changes(func(s *appsv1.StatefulSet) {
	for i := range s.Spec.VolumeClaimTemplates {
		setKey(&s.Spec.VolumeClaimTemplates[i].Labels, "example.com/backup", "daily")
	}
})

// jobTraced annotates the Pod template of a Job, which is immutable in updates.
var jobTraced = changes(func(j *batchv1.Job) {
	setKey(&j.Spec.Template.Annotations, "trace.example.com/enabled", "true")
})

// immutableData adds data to ConfigMaps. The API server rejects this for an immutable one.
var immutableData = changes(func(c *corev1.ConfigMap) {
	if _, taken := c.BinaryData["ca.crt"]; !taken {
		setKey(&c.Data, "ca.crt", "-----BEGIN CERTIFICATE-----")
	}
})

// teamFromName reads the part of the name after the first dash. It panics on a name without a dash.
var teamFromName = changes(func(n *corev1.Namespace) {
	setKey(&n.Labels, "example.com/team", strings.Split(n.Name, "-")[1])
})

// addsMinAvailable sets minAvailable, which is invalid together with maxUnavailable.
var addsMinAvailable = changes(func(b *policyv1.PodDisruptionBudget) {
	if b.Spec.MinAvailable == nil {
		b.Spec.MinAvailable = ptr.To(intstr.FromInt32(1))
	}
})

// The type countingWidget omits the field retries when it is encoded with the value 0.
type countingWidget struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Options string            `json:"options,omitempty"`
		Retries int64             `json:"retries,omitempty"`
		Mode    string            `json:"mode,omitempty"`
		Memory  any               `json:"memory,omitempty"`
		Tags    map[string]string `json:"tags,omitempty"`
		Extra   json.RawMessage   `json:"extra,omitempty"`
		Stores  []json.RawMessage `json:"stores,omitempty"`
		Steps   []json.RawMessage `json:"steps,omitempty"`
	} `json:"spec"`
}

// frozenWhenDeleted denies updates during deletion. Controllers can then never remove their
// finalizers.
func frozenWhenDeleted(_ *review.Request, w *widget) error {
	if w.DeletionTimestamp != nil {
		return denial("the widget is being deleted")
	}
	annotateWidget(w)
	return nil
}

// oneVersion returns a case that is registered for two review versions but fails for v1beta1.
func oneVersion() Case {
	inner := pods(tokenMounted)
	return podCase("B60 registered for v1beta1, reads v1 only", func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !readsV1(req) {
				http.Error(w, "unexpected review", http.StatusBadRequest)
				return
			}
			inner.ServeHTTP(w, req)
		})
	}).breaks("L8")
}

// atLeastTwo raises minReplicas to 2, which is invalid if maxReplicas is 1.
var atLeastTwo = changes(func(h *autoscalingv2.HorizontalPodAutoscaler) {
	h.Spec.MinReplicas = ptr.To(max(ptr.Deref(h.Spec.MinReplicas, 1), 2))
})

// checksWrongList adds a pull secret, but looks for it among the other secrets. A second call adds it
// again.
var checksWrongList = changes(func(a *corev1.ServiceAccount) {
	const name = "registry-mirror"
	if !slices.ContainsFunc(a.Secrets, func(s corev1.ObjectReference) bool { return s.Name == name }) {
		a.ImagePullSecrets = append(a.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
})

// tierSelected adds a selector to a claim that has none and no data source. The selector is immutable
// in updates.
var tierSelected = changes(func(c *corev1.PersistentVolumeClaim) {
	if c.Spec.Selector == nil && c.Spec.DataSource == nil && c.Spec.DataSourceRef == nil {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/tier": "gold"}}
	}
})

// The type memoryWidget decodes memory as a string, but the custom resource also permits integers.
type memoryWidget struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Memory string `json:"memory,omitempty"`
	} `json:"spec"`
}

// memoryAsString copies the memory into an annotation. It fails if the memory is an integer.
var memoryAsString = changes(func(w *memoryWidget) {
	setKey(&w.Metadata.Annotations, "example.com/memory", cmp.Or(w.Spec.Memory, "none"))
})

// recordsOperation records whether the request was a create or an update, so even an update without
// changes modifies the object.
func recordsOperation(r *review.Request, doc tree) error {
	if r.Operation == admissionv1.Update {
		at(doc, "metadata", "annotations")["example.com/phase"] = "updated"
	} else {
		at(doc, "metadata", "annotations")["example.com/phase"] = "created"
	}
	return nil
}

// floatNumbers replaces the specification after decoding its numbers as floats. Large integers lose
// digits, and 1.0 becomes 1.
func floatNumbers(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	spec, ok := member[tree](doc, "spec")
	if !ok || spec["class"] != nil {
		return nil, nil
	}
	spec["class"] = "internal"
	return []op{{Op: "replace", Path: "/spec", Value: spec}}, nil
}

// addsFailurePolicy adds a Pod failure policy to Jobs. The API server accepts it only with
// restartPolicy Never.
func addsFailurePolicy(r *review.Request, j *batchv1.Job) error {
	if r.Operation == admissionv1.Create && j.Spec.PodFailurePolicy == nil {
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		}}}
	}
	return nil
}

// templateLabels replaces the labels of the template with its own. It removes the user's labels.
func templateLabels(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	const key = "example.com/scheduled"
	path := []string{"spec", "jobTemplate", "spec", "template", "metadata"}
	metadata, ok := member[tree](doc, path...)
	switch {
	case textAt(metadata, "labels", key) == "true":
		return nil, nil
	case !ok:
		return []op{{Op: "add", Path: "/" + strings.Join(path, "/"), Value: tree{"labels": tree{key: "true"}}}}, nil
	}
	return []op{{Op: "add", Path: "/" + strings.Join(path, "/") + "/labels", Value: tree{key: "true"}}}, nil
}
