// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"maps"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update

	controllers = "system:serviceaccount:kube-system:"
	aNode       = "system:node:node-1"
	unknownUser = ""
)

// A resource is a built-in resource, with its kind and a version that every cluster serves.
type resource struct{ group, version, resource, kind string }

var (
	pods           = resource{"", "v1", "pods", "Pod"}
	services       = resource{"", "v1", "services", "Service"}
	endpoints      = resource{"", "v1", "endpoints", "Endpoints"}
	configMaps     = resource{"", "v1", "configmaps", "ConfigMap"}
	secrets        = resource{"", "v1", "secrets", "Secret"}
	accounts       = resource{"", "v1", "serviceaccounts", "ServiceAccount"}
	nodes          = resource{"", "v1", "nodes", "Node"}
	endpointSlices = resource{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"}
	leases         = resource{"coordination.k8s.io", "v1", "leases", "Lease"}
	deployments    = resource{"apps", "v1", "deployments", "Deployment"}
	daemonSets     = resource{"apps", "v1", "daemonsets", "DaemonSet"}
	replicaSets    = resource{"apps", "v1", "replicasets", "ReplicaSet"}
	csiNodes       = resource{"storage.k8s.io", "v1", "csinodes", "CSINode"}
	attachments    = resource{"storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment"}
	signing        = resource{"certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest"}
)

// on returns a request for an object whose labels are unknown.
func (r resource) on(operation admissionregistrationv1.OperationType, namespace, name, user string) request {
	return request{
		GroupVersionResource: schema.GroupVersionResource{Group: r.group, Version: r.version, Resource: r.resource},
		kind:                 schema.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind},
		operation:            operation, namespace: namespace, name: name, users: []string{user},
	}
}

// memberOf returns the groups of a user.
func memberOf(user string) []string {
	groups := []string{"system:authenticated"}
	switch {
	case strings.HasPrefix(user, controllers):
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:kube-system")
	case user == aNode:
		groups = append(groups, "system:nodes")
	}
	return groups
}

func (r request) sub(name string) request {
	r.subresource = name
	return r
}

func (r request) String() string {
	text := r.Resource
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	return text
}

// podCreators maps the kinds of workloads to the users that create their Pods.
var podCreators = map[string]string{
	"Deployment": controllers + "replicaset-controller", "StatefulSet": controllers + "statefulset-controller",
	"DaemonSet": controllers + "daemon-set-controller", "Job": controllers + "job-controller",
}

// podIn returns a request that creates a Pod. Only the namespace of the Pod is known.
func podIn(namespace string) request {
	r := pods.on(create, namespace, "pod-1", "")
	r.users = nil
	for _, user := range podCreators {
		r.users = append(r.users, user)
	}
	return r
}

// podOf returns a request that creates a Pod of a workload, with the labels that its controller adds.
func podOf(w workload) request {
	added := map[string][]string{
		"Deployment":  {"pod-template-hash"},
		"StatefulSet": {"controller-revision-hash", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"},
		"DaemonSet":   {"controller-revision-hash", "pod-template-generation"},
	}
	r := pods.on(create, w.namespace, "pod-1", cmp.Or(podCreators[w.kind], unknownUser))
	r.labels = known{map[string]string{}, true}
	maps.Copy(r.labels.labels, w.template.Labels)
	for _, label := range added[w.kind] {
		r.labels.labels[label] = "1"
	}
	template := w.template.DeepCopy()
	template.Spec.ServiceAccountName = cmp.Or(template.Spec.ServiceAccountName, template.Spec.DeprecatedServiceAccount, "default")
	if object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template); err == nil {
		r.object = object
	}
	return r
}

// needsOf returns the requests that start and repair the Pods behind a Service, except those that create the Pods.
// account is the ServiceAccount of the Pods. deployed says that a Deployment may own them.
func needsOf(namespace, service, account string, deployed bool) []request {
	token := accounts.on(create, namespace, account, aNode).sub("token")
	token.kind = schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"}
	binding := pods.on(create, namespace, "pod-1", "system:kube-scheduler").sub("binding")
	binding.kind.Kind = "Binding"
	needs := []request{
		binding,
		pods.on(update, namespace, "pod-1", aNode).sub("status"),
		token,
		endpoints.on(update, namespace, service, controllers+"endpoint-controller"),
		endpointSlices.on(update, namespace, service+"-1", controllers+"endpointslice-controller"),
		secrets.on(update, namespace, service+"-tls", unknownUser),
	}
	if deployed {
		needs = append(needs,
			deployments.on(update, namespace, service, unknownUser),
			replicaSets.on(create, namespace, service+"-1", controllers+"deployment-controller"))
	}
	return needs
}

// controlPlaneRequests returns requests that the control plane and the add-ons in kube-system need.
func controlPlaneRequests() []request {
	const namespace = "kube-system"
	return []request{
		podIn(namespace),
		leases.on(update, namespace, "kube-controller-manager", "system:kube-controller-manager"),
		daemonSets.on(update, namespace, "kube-proxy", unknownUser),
		deployments.on(update, namespace, "coredns", unknownUser),
		replicaSets.on(create, namespace, "coredns-1", controllers+"deployment-controller"),
		services.on(update, namespace, "kube-dns", unknownUser),
		endpointSlices.on(update, namespace, "kube-dns-1", controllers+"endpointslice-controller"),
		configMaps.on(update, namespace, "extension-apiserver-authentication", "system:apiserver"),
		secrets.on(create, namespace, "bootstrap-token-1", unknownUser),
		accounts.on(update, namespace, "default", controllers+"service-account-controller"),
	}
}

// ofNodes returns the requests that a node needs to join the cluster and to stay ready.
func ofNodes() []request {
	return []request{
		nodes.on(create, "", "node-1", aNode),
		nodes.on(update, "", "node-1", aNode).sub("status"),
		csiNodes.on(update, "", "node-1", aNode),
		attachments.on(create, "", "volume-1", controllers+"attachdetach-controller"),
		signing.on(create, "", "request-1", aNode),
	}
}

// reviewRequests returns requests that create reviews, such as TokenReviews, which are never stored.
func reviewRequests() []request {
	var all []request
	for _, r := range reviews {
		namespace := ""
		if r.resource == "localsubjectaccessreviews" {
			namespace = "default"
		}
		r := r.on(create, namespace, "", aNode)
		r.labels.complete = true
		all = append(all, r)
	}
	return all
}

// reviews lists the review resources. Kubernetes 1.37 and later call no webhook for them. The feature gate
// ExcludeAdmissionWebhookVirtualResources, which is beta, can turn this off.
var reviews = []resource{
	{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview"},
	{"authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview"},
	{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"},
	{"authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview"},
	{"authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"},
	{"authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"},
}
