// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/problem"
)

// A pluginField is a field that an admission plugin sets or changes in new objects before webhooks are called. If
// ifUnset is true, the plugin sets the field only if it is missing.
type pluginField struct {
	name, plugin string
	ifUnset      bool
}

var pluginFields = map[schema.GroupResource][]pluginField{
	{Resource: "pods"}: {
		{"serviceAccountName", "ServiceAccount", true}, {"serviceAccount", "ServiceAccount", true}, {"imagePullSecrets", "ServiceAccount", true},
		{"volumes", "ServiceAccount", false}, {"volumeMounts", "ServiceAccount", false}, {"tolerations", "DefaultTolerationSeconds", false},
		{"priority", "Priority", false}, {"priorityClassName", "Priority", true}, {"preemptionPolicy", "Priority", true},
		{"resources", "LimitRanger", false}, {"overhead", "RuntimeClass", false}, {"nodeSelector", "RuntimeClass", false},
	},
	{Resource: "persistentvolumeclaims"}:                                   {{"storageClassName", "DefaultStorageClass", true}, {"finalizers", "StorageObjectInUseProtection", false}},
	{Resource: "persistentvolumes"}:                                        {{"finalizers", "StorageObjectInUseProtection", false}},
	{Group: "networking.k8s.io", Resource: "ingresses"}:                    {{"ingressClassName", "DefaultIngressClass", true}},
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}: {{"username", "its registry", false}, {"groups", "its registry", false}},
}

// A registryField is a field that the registry of a kind sets between mutating and validating webhooks, on CREATE or
// UPDATE. If given is not empty, the registry sets the field only in objects that have the field named by given.
type registryField struct{ name, given string }

var registryFields = map[schema.GroupResource][]registryField{
	{Resource: "services"}: {{name: "clusterIP"}, {name: "clusterIPs"}, {name: "nodePort"}, {name: "ipFamilies"}, {name: "ipFamilyPolicy"}, {name: "healthCheckNodePort"}},
	{Resource: "pods"}:     {{"labelSelector", "matchLabelKeys"}, {"labelSelector", "mismatchLabelKeys"}},
}

// stays reports whether the field is clusterIP and the Service already has a value in it, an address or None. The API
// server then allocates no address.
func (t *explainer) stays(field string) bool {
	if field != "clusterIP" || t.req.resource.Resource != "services" {
		return false
	}
	var service struct {
		Spec struct {
			ClusterIP string `json:"clusterIP"`
		} `json:"spec"`
	}
	return json.Unmarshal(t.req.Object, &service) == nil && service.Spec.ClusterIP != ""
}

// byRegistry returns a field that a validating webhook's condition reads and that the registry may change, or "".
func (t *explainer) byRegistry(m mentions) string {
	if t.req.SubResource != "" || t.req.Operation != admissionv1.Create && t.req.Operation != admissionv1.Update {
		return ""
	}
	for _, f := range registryFields[t.req.resource.GroupResource()] {
		if m.words[f.name] && (f.given == "" || t.has(f.given)) && !t.stays(f.name) {
			return f.name
		}
	}
	return ""
}

// keptByPlugins returns the new Pod of an update after the plugins Priority and DefaultTolerationSeconds have restored
// fields of the old Pod. Without these fields, the API server would reject the update.
func keptByPlugins(object, old []byte) ([]byte, error) {
	var pod, stored map[string]any
	for data, into := range map[*[]byte]*map[string]any{&object: &pod, &old: &stored} {
		if err := json.Unmarshal(*data, into); err != nil {
			return nil, problem.New("%w", err)
		}
	}
	spec, _, err := unstructured.NestedMap(pod, "spec")
	before, _, errOld := unstructured.NestedMap(stored, "spec")
	if err != nil || errOld != nil || spec == nil || before == nil {
		return object, nil // the decoder of the API server's types reports the error later
	}
	for _, name := range []string{"priority", "preemptionPolicy"} {
		if _, ok := spec[name]; !ok && before[name] != nil {
			spec[name] = before[name]
		}
	}
	tolerations, _ := spec["tolerations"].([]any)
	all, _ := before["tolerations"].([]any)
	for _, t := range all {
		key := keyOf(t)
		byPlugin := strings.HasPrefix(key, "node.kubernetes.io/not-ready") || strings.HasPrefix(key, "node.kubernetes.io/unreachable")
		if byPlugin && !slices.ContainsFunc(tolerations, func(other any) bool { return keyOf(other) == key }) {
			tolerations = append(tolerations, t)
		}
	}
	if len(tolerations) > 0 {
		spec["tolerations"] = tolerations
	}
	pod["spec"] = spec
	return json.Marshal(pod)
}

func keyOf(toleration any) string {
	fields, _ := toleration.(map[string]any)
	key, _ := fields["key"].(string)
	return key
}
