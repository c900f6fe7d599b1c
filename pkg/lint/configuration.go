// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	kjson "sigs.k8s.io/json"
)

const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
	registration   = "admissionregistration.k8s.io/"
)

// A configuration is a mutating or validating webhook configuration, without defaults.
type configuration struct {
	index    int
	mutating bool
	v1beta1  bool
	metav1.ObjectMeta
	webhooks []*webhook
	// decoded is the configuration as the API server decodes it. A validating configuration is stored as a
	// mutating one.
	decoded admissionregistrationv1.MutatingWebhookConfiguration
}

func (c *configuration) String() string {
	kind := validatingKind
	if c.mutating {
		kind = mutatingKind
	}
	return kind + "/" + c.Name
}

// A webhook is one webhook of a configuration. A validating webhook is stored as a mutating one without a
// reinvocationPolicy.
type webhook struct {
	of *configuration
	at *field.Path
	admissionregistrationv1.MutatingWebhook
	matcher matchconditions.Matcher // compiled on first use
}

func (h *webhook) fails() bool {
	if h.FailurePolicy == nil {
		return !h.of.v1beta1
	}
	return *h.FailurePolicy == admissionregistrationv1.Fail
}

func (h *webhook) seconds() int32 {
	switch {
	case h.TimeoutSeconds != nil:
		return *h.TimeoutSeconds
	case h.of.v1beta1:
		return 30
	}
	return 10
}

func (h *webhook) isExact() bool {
	if h.MatchPolicy == nil {
		return h.of.v1beta1
	}
	return *h.MatchPolicy == admissionregistrationv1.Exact
}

// surroundings holds the objects of the input that are not configurations, such as Services.
type surroundings struct {
	namespaces map[string]*corev1.Namespace
	services   map[string]*corev1.Service // by namespace/name
	workloads  []workload
	scaled     map[string]bool // workloads with a HorizontalPodAutoscaler, by workload.String
	crds       []*apiextensionsv1.CustomResourceDefinition
}

// A workload is a Pod or an object with a Pod template.
type workload struct {
	kind, namespace, name string
	replicas              *int32
	template              corev1.PodTemplateSpec
}

func (w workload) String() string { return fmt.Sprintf("%s %s/%s", w.kind, w.namespace, w.name) }

// read decodes the objects of the input. A configuration that it cannot decode becomes a finding. It skips other
// objects that it cannot decode.
func (l *linter) read() {
	l.around = surroundings{namespaces: map[string]*corev1.Namespace{}, services: map[string]*corev1.Service{}, scaled: map[string]bool{}}
	for i, object := range l.input.Objects {
		document, err := documentOf(object)
		if err != nil {
			continue
		}
		version, _ := document["apiVersion"].(string)
		kind, _ := document["kind"].(string)
		if strings.HasPrefix(version, registration) && (kind == mutatingKind || kind == validatingKind) {
			l.readConfiguration(i, version, kind, document)
			continue
		}
		l.around.add(version+" "+kind, document)
	}
}

// documentOf returns an object as a JSON document. It adds apiVersion and kind, which are often empty in Go values.
func documentOf(object runtime.Object) (map[string]any, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, &document); err != nil {
		return nil, err
	}
	if version, kind := typeOf(object); kind != "" && document != nil {
		document["apiVersion"], document["kind"] = version, kind
	}
	return document, nil
}

func typeOf(object runtime.Object) (version, kind string) {
	switch object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		return registration + "v1", mutatingKind
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		return registration + "v1", validatingKind
	case *admissionregistrationv1beta1.MutatingWebhookConfiguration:
		return registration + "v1beta1", mutatingKind
	case *admissionregistrationv1beta1.ValidatingWebhookConfiguration:
		return registration + "v1beta1", validatingKind
	case *corev1.Namespace:
		return "v1", "Namespace"
	case *corev1.Service:
		return "v1", "Service"
	case *corev1.Pod:
		return "v1", "Pod"
	case *appsv1.Deployment:
		return "apps/v1", "Deployment"
	case *appsv1.StatefulSet:
		return "apps/v1", "StatefulSet"
	case *appsv1.DaemonSet:
		return "apps/v1", "DaemonSet"
	case *autoscalingv2.HorizontalPodAutoscaler:
		return "autoscaling/v2", "HorizontalPodAutoscaler"
	case *apiextensionsv1.CustomResourceDefinition:
		return "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	}
	return "", ""
}

func (l *linter) readConfiguration(index int, version, kind string, document map[string]any) {
	c := &configuration{index: index, mutating: kind == mutatingKind, v1beta1: version == registration+"v1beta1"}
	if metadata, ok := document["metadata"].(map[string]any); ok {
		c.Name, _ = metadata["name"].(string) // findings need the name before the document is decoded
	}
	l.removeInvalidBundles(c, document)
	encoded, err := json.Marshal(document)
	if err != nil {
		return
	}
	unknown, err := decodeConfiguration(c, encoded)
	if err != nil {
		at := locateDecodeError(document)
		f := l.foundIn("AK101", c, at.path, decodeMessage(err))
		f.Webhook = at.webhook
		return
	}
	for _, u := range unknown {
		path, ok := strings.CutPrefix(strings.TrimSuffix(u.Error(), `"`), `unknown field "`)
		if !ok {
			continue
		}
		message := fmt.Sprintf("the field %s does not exist: the API server drops it", path)
		if strings.HasSuffix(path, ".reinvocationPolicy") {
			message = "the API server drops reinvocationPolicy, because validating webhooks are called only once"
		}
		f := l.foundIn("AK112", c, nil, message)
		f.Path = path
		if index, ok := webhookIndex(path); ok && index < len(c.webhooks) {
			f.Webhook = c.webhooks[index].Name
		}
	}
	l.configurations = append(l.configurations, c)
}

// decodeConfiguration decodes a document into c and returns an error for each unknown field. It decodes v1beta1 as v1,
// because the fields have the same names.
func decodeConfiguration(c *configuration, encoded []byte) ([]error, error) {
	var unknown []error
	var err error
	if c.mutating {
		unknown, err = kjson.UnmarshalStrict(encoded, &c.decoded)
	} else {
		var validating admissionregistrationv1.ValidatingWebhookConfiguration
		unknown, err = kjson.UnmarshalStrict(encoded, &validating)
		c.decoded.ObjectMeta = validating.ObjectMeta
		for _, w := range validating.Webhooks {
			c.decoded.Webhooks = append(c.decoded.Webhooks, admissionregistrationv1.MutatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
				TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
			})
		}
	}
	if err != nil {
		return nil, err
	}
	c.ObjectMeta = c.decoded.ObjectMeta
	for i, w := range c.decoded.Webhooks {
		c.webhooks = append(c.webhooks, &webhook{of: c, at: field.NewPath("webhooks").Index(i), MutatingWebhook: w})
	}
	return unknown, nil
}

// removeInvalidBundles reports and removes each caBundle that is not base64, so that the rest can be decoded.
func (l *linter) removeInvalidBundles(c *configuration, document map[string]any) {
	webhooks, _ := document["webhooks"].([]any)
	for i, w := range webhooks {
		webhook, _ := w.(map[string]any)
		client, _ := webhook["clientConfig"].(map[string]any)
		bundle, ok := client["caBundle"].(string)
		if !ok {
			continue
		}
		if _, err := base64.StdEncoding.DecodeString(bundle); err != nil {
			f := l.foundIn("AK501", c, field.NewPath("webhooks").Index(i).Child("clientConfig", "caBundle"),
				fmt.Sprintf("%s is not base64: the API server rejects the whole configuration", quoteStart(bundle)))
			f.Webhook, _ = webhook["name"].(string)
			delete(client, "caBundle")
		}
	}
}

// quoteStart quotes the first 32 characters of a text.
func quoteStart(text string) string {
	if runes := []rune(text); len(runes) > 32 {
		return fmt.Sprintf("%q...", string(runes[:32]))
	}
	return fmt.Sprintf("%q", text)
}

// add stores an object that is not a configuration. It skips unknown kinds and objects that cannot be decoded.
func (s *surroundings) add(kind string, document map[string]any) {
	switch kind {
	case "v1 Namespace":
		if n, ok := as[corev1.Namespace](document); ok {
			s.namespaces[n.Name] = n
		}
	case "v1 Service":
		if v, ok := as[corev1.Service](document); ok {
			s.services[v.Namespace+"/"+v.Name] = v
		}
	case "v1 Pod":
		if p, ok := as[corev1.Pod](document); ok {
			s.workloads = append(s.workloads, workload{"Pod", p.Namespace, p.Name, nil,
				corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}})
		}
	case "apps/v1 Deployment":
		if d, ok := as[appsv1.Deployment](document); ok {
			s.workloads = append(s.workloads, workload{"Deployment", d.Namespace, d.Name, orOne(d.Spec.Replicas), d.Spec.Template})
		}
	case "apps/v1 StatefulSet":
		if d, ok := as[appsv1.StatefulSet](document); ok {
			s.workloads = append(s.workloads, workload{"StatefulSet", d.Namespace, d.Name, orOne(d.Spec.Replicas), d.Spec.Template})
		}
	case "apps/v1 DaemonSet":
		if d, ok := as[appsv1.DaemonSet](document); ok {
			s.workloads = append(s.workloads, workload{"DaemonSet", d.Namespace, d.Name, nil, d.Spec.Template})
		}
	case "autoscaling/v2 HorizontalPodAutoscaler", "autoscaling/v1 HorizontalPodAutoscaler":
		if a, ok := as[autoscalingv2.HorizontalPodAutoscaler](document); ok { // both versions have the same scaleTargetRef
			s.scaled[workload{kind: a.Spec.ScaleTargetRef.Kind, namespace: a.Namespace, name: a.Spec.ScaleTargetRef.Name}.String()] = true
		}
	case "apiextensions.k8s.io/v1 CustomResourceDefinition":
		if d, ok := as[apiextensionsv1.CustomResourceDefinition](document); ok {
			s.crds = append(s.crds, d)
		}
	}
}

func as[T any](document map[string]any) (*T, bool) {
	encoded, err := json.Marshal(document)
	if err != nil {
		return nil, false
	}
	into := new(T)
	return into, kjson.UnmarshalCaseSensitivePreserveInts(encoded, into) == nil
}

func orOne(replicas *int32) *int32 {
	if replicas == nil {
		one := int32(1)
		return &one
	}
	return replicas
}
