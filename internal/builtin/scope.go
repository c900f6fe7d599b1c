// SPDX-License-Identifier: Apache-2.0

package builtin

import "k8s.io/apimachinery/pkg/runtime/schema"

// ClusterScoped reports whether a resource is one of Kubernetes' own that is in no namespace.
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
