// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterScoped reports whether r is a built-in resource that is cluster-scoped.
func ClusterScoped(r schema.GroupResource) bool { return clusterScoped[r] }

var clusterScoped = func() map[schema.GroupResource]bool {
	all := map[schema.GroupResource]bool{}
	for group, resources := range map[string][]string{
		"":                             {"namespaces", "nodes", "persistentvolumes", "componentstatuses"},
		"admissionregistration.k8s.io": {"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"},
		"apiextensions.k8s.io":         {"customresourcedefinitions"},
		"authentication.k8s.io":        {"tokenreviews", "selfsubjectreviews"},
		"authorization.k8s.io":         {"subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"},
		"certificates.k8s.io":          {"certificatesigningrequests", "clustertrustbundles"},
		"flowcontrol.apiserver.k8s.io": {"flowschemas", "prioritylevelconfigurations"},
		"internal.apiserver.k8s.io":    {"storageversions"},
		"networking.k8s.io":            {"ingressclasses", "ipaddresses", "servicecidrs"},
		"node.k8s.io":                  {"runtimeclasses"},
		"policy":                       {"podsecuritypolicies"},
		"rbac.authorization.k8s.io":    {"clusterroles", "clusterrolebindings"},
		"resource.k8s.io":              {"deviceclasses", "resourceslices", "devicetaintrules"},
		"scheduling.k8s.io":            {"priorityclasses"},
		"storage.k8s.io":               {"storageclasses", "volumeattachments", "csidrivers", "csinodes", "volumeattributesclasses"},
		"storagemigration.k8s.io":      {"storageversionmigrations"},
		"imagepolicy.k8s.io":           {"imagereviews"},
	} {
		for _, resource := range resources {
			all[schema.GroupResource{Group: group, Resource: resource}] = true
		}
	}
	return all
}()

// Virtual reports whether r is a built-in resource that the API server does not store, such as a TokenReview or
// SubjectAccessReview. Its objects need no name. Since Kubernetes 1.37 no webhook is called for them.
func Virtual(r schema.GroupResource) bool {
	switch r.Group {
	case "authentication.k8s.io":
		return r.Resource == "tokenreviews" || r.Resource == "selfsubjectreviews"
	case "authorization.k8s.io":
		return strings.HasSuffix(r.Resource, "accessreviews") || r.Resource == "selfsubjectrulesreviews"
	}
	return false
}

// CountsChanges reports whether the API server increments metadata.generation for changes of a built-in kind.
func CountsChanges(kind schema.GroupKind) bool { return counted[kind] }

var counted = func() map[schema.GroupKind]bool {
	all := map[schema.GroupKind]bool{}
	for group, kinds := range map[string]string{
		"":                             "Pod PodTemplate ReplicationController",
		"admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
		"apps":                         "DaemonSet Deployment ReplicaSet StatefulSet",
		"batch":                        "CronJob Job",
		"discovery.k8s.io":             "EndpointSlice",
		"flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
		"networking.k8s.io":            "Ingress IngressClass NetworkPolicy",
		"policy":                       "PodDisruptionBudget",
		"resource.k8s.io":              "DeviceClass DeviceTaintRule ResourceSlice",
		"scheduling.k8s.io":            "PriorityClass",
	} {
		for kind := range strings.FieldsSeq(kinds) {
			all[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return all
}()
