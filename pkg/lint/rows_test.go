// SPDX-License-Identifier: Apache-2.0

package lint

import "strings"

const (
	anyPod     = `operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]`
	ownService = `
apiVersion: v1
kind: Service
metadata: {namespace: sidecar, name: webhook}
spec: {selector: {app: webhook}, ports: [{port: 443}]}
`
	ownDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: sidecar, name: webhook}
spec:
  replicas: 1
  template: {metadata: {labels: {app: webhook}}, spec: {serviceAccountName: webhook}}
`
	daemonSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: sidecar, name: webhook}
spec: {template: {metadata: {labels: {app: webhook}}, spec: {}}}
`
	ownScaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {namespace: sidecar, name: webhook}
spec: {maxReplicas: 5, minReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: webhook}}
`
	labelled = `
apiVersion: v1
kind: Namespace
metadata: {name: sidecar, labels: {injection: disabled}}
`
	notDisabled = "namespaceSelector: {matchExpressions: [{key: injection, operator: NotIn, values: [disabled]}, {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}"
	exclude     = "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}"
)

func lockoutRows() []row {
	star := rule(`operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]`)
	namespaced := rule(`operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], scope: Namespaced`)
	const optIn = "namespaceSelector: {matchLabels: {policy: enforced}}"
	onLeases := rule(`operations: [UPDATE], apiGroups: [coordination.k8s.io], apiVersions: [v1], resources: [leases]`)
	onNodes := rule(`operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [nodes, nodes/status]`)
	onSlices := rule(`operations: [CREATE, UPDATE], apiGroups: [discovery.k8s.io], apiVersions: [v1], resources: [endpointslices]`)
	other := strings.NewReplacer("name: sidecar\n", "name: audit\n", "sidecar.example.com", "audit.example.com", "namespace: sidecar", "namespace: audit").Replace(cleanMutating)
	third := strings.NewReplacer("name: sidecar\n", "name: third\n", "sidecar.example.com", "third.example.com", "namespace: sidecar", "namespace: third").Replace(cleanMutating)
	not := func(namespaces string) string {
		return "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, " + namespaces + "]}]}"
	}
	live := Options{Live: true}
	return []row{
		{rule: "AK201", breaks: true, reason: "no selector", text: mutating(anywhere), path: "webhooks[0].rules[0]"},
		{rule: "AK201", breaks: true, reason: "kube-system only is excluded", text: mutating(exclude)},
		{rule: "AK201", breaks: true, reason: "the service is named by a URL", text: mutating(exclude, `clientConfig: {url: "https://webhook.sidecar.svc:8443/mutate"}`)},
		{rule: "AK201", breaks: true, reason: "the namespace's labels are known and do not exclude it", text: join(mutating(notDisabled), strings.Replace(labelled, "disabled", "enabled", 1))},
		{rule: "AK201", breaks: true, reason: "the known Pods lack the label that excludes them", text: join(mutating(exclude, "objectSelector: {matchExpressions: [{key: skip, operator: DoesNotExist}]}"), ownService, ownDeployment)},
		{rule: "AK201", breaks: true, reason: "the condition is true for its pods", text: mutating(exclude, `matchConditions: [{name: a, expression: "request.userInfo.username != 'kubelet'"}]`)},
		{rule: "AK201", reason: "excluded by name", text: cleanMutating},
		{rule: "AK201", reason: "failurePolicy is Ignore", text: mutating(anywhere, "failurePolicy: Ignore")},
		{rule: "AK201", reason: "excluded by a label that the namespace has", text: join(mutating(notDisabled), labelled)},
		{rule: "AK201", reason: "the labels are unknown", text: mutating(notDisabled)},
		{rule: "AK201", reason: "the namespaceSelector is opt-in", text: mutating("namespaceSelector: {matchLabels: {injection: enabled}}")},
		{rule: "AK201", reason: "excluded by the label of its pods", text: join(mutating(exclude, "objectSelector: {matchExpressions: [{key: app, operator: NotIn, values: [webhook]}]}"), ownService, ownDeployment)},
		{rule: "AK201", reason: "excluded by a condition", text: mutating(exclude, `matchConditions: [{name: a, expression: "request.namespace != 'sidecar'"}]`)},
		{rule: "AK201", reason: "the condition uses an unknown field of Pods", text: mutating(exclude, `matchConditions: [{name: a, expression: "object.metadata.labels['team'] == 'a'"}]`)},
		{rule: "AK201", reason: "the authorizer is not known", text: mutating(exclude, `matchConditions: [{name: a, expression: "!authorizer.group('').resource('pods').check('skip').allowed()"}]`)},
		{rule: "AK201", reason: "its labels are not known, so that the condition may exclude it", text: mutating(exclude, `matchConditions: [{name: a, expression: "!('skip' in object.metadata.labels)"}]`)},
		{rule: "AK201", reason: "a negated test of an unknown field", text: mutating(exclude, `matchConditions: [{name: a, expression: "!has(object.metadata.labels) || object.metadata.labels['skip'] != 'true'"}]`)},
		{rule: "AK201", breaks: true, reason: "the labels of the Deployment are known", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "object.metadata.labels['app'] != 'other'"}]`), ownService, ownDeployment)},
		{rule: "AK201", reason: "the labels of the Deployment exclude it", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "object.metadata.labels['app'] != 'webhook'"}]`), ownService, ownDeployment)},
		{rule: "AK201", reason: "the service account of the Deployment excludes it", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "object.spec.serviceAccountName != 'webhook'"}]`), ownService, ownDeployment)},
		{rule: "AK201", breaks: true, reason: "the service account of the Deployment does not exclude it", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "object.spec.serviceAccountName != 'other'"}]`), ownService, ownDeployment)},
		{rule: "AK201", reason: "admission adds volumes", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "!has(object.spec.volumes)"}]`), ownService, ownDeployment)},
		{rule: "AK201", reason: "the default of a field that the template omits", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "!has(object.spec.restartPolicy)"}]`), ownService, ownDeployment)},
		{rule: "AK201", breaks: true, reason: "hostNetwork has no default", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "!has(object.spec.hostNetwork) || !object.spec.hostNetwork"}]`), ownService, ownDeployment)},
		{rule: "AK201", breaks: true, reason: "these requests always have an object", text: mutating(exclude, `matchConditions: [{name: a, expression: "object != null"}]`)},
		{rule: "AK201", reason: "a condition excludes the controller of DaemonSets", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "request.userInfo.username != 'system:serviceaccount:kube-system:daemon-set-controller'"}]`), ownService, daemonSet)},
		{rule: "AK201", breaks: true, reason: "another controller creates its Pods", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "request.userInfo.username != 'system:serviceaccount:kube-system:daemon-set-controller'"}]`), ownService, ownDeployment)},
		{rule: "AK201", reason: "the controller of its pods is not known", text: mutating(exclude, `matchConditions: [{name: a, expression: "request.userInfo.username != 'system:serviceaccount:kube-system:daemon-set-controller'"}]`)},
		{rule: "AK201", reason: "names of pods are not known", text: join(mutating(exclude, `matchConditions: [{name: a, expression: "request.name != 'webhook-1'"}]`), ownService, ownDeployment)},
		{rule: "AK201", reason: "it is not called for pods", text: mutating(anywhere, rule(`operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]`))},
		{rule: "AK201", reason: "pods have no such version", text: mutating(anywhere, rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1beta1], resources: [pods]`))},
		{rule: "AK201", reason: "its Service has no selector", text: join(mutating(anywhere), strings.Replace(ownService, "selector: {app: webhook}", "type: ExternalName, externalName: hooks.example.com", 1))},
		{rule: "AK201", reason: "an aggregated API server answers", text: mutating(anywhere, "service: {namespace: default, name: kubernetes, path: /apis/a/v1/b}")},
		{rule: "AK201", reason: "it runs outside of the cluster", text: mutating(anywhere, `clientConfig: {url: "https://hooks.example.com/"}`)},

		{rule: "AK202", breaks: true, reason: "its Service needs endpoints", text: mutating(exclude, onSlices)},
		{rule: "AK202", breaks: true, reason: "kubelets ask for tokens", text: mutating(exclude, rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [serviceaccounts/token]`))},
		{rule: "AK202", breaks: true, reason: "pods/* includes bindings and status", text: mutating(exclude, rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods/*]`))},
		{rule: "AK202", breaks: true, reason: "its own Deployment cannot be repaired", text: validating("namespaceSelector: {}", rule(`operations: [UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]`))},
		{rule: "AK202", reason: "its own Deployment is a StatefulSet", text: join(mutating(exclude, rule(`operations: [UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]`)), ownService, strings.Replace(ownDeployment, "kind: Deployment", "kind: StatefulSet", 1))},
		{rule: "AK202", breaks: true, reason: "its next certificate", text: mutating(exclude, rule(`operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [secrets]`))},
		{rule: "AK202", reason: "the condition may exclude its endpoints", text: mutating(exclude, onSlices, `matchConditions: [{name: a, expression: "!('skip' in object.metadata.labels)"}]`)},
		{rule: "AK202", reason: "the condition may exclude the user who repairs its Deployment", text: validating("namespaceSelector: {}", rule(`operations: [UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]`), `matchConditions: [{name: a, expression: "!('platform' in request.userInfo.groups)"}]`)},
		{rule: "AK202", reason: "its namespace is excluded", text: mutating(onSlices)},
		{rule: "AK202", reason: "failurePolicy is Ignore", text: mutating(exclude, onSlices, "failurePolicy: Ignore")},
		{rule: "AK202", reason: "Pods do not need the resource", text: mutating(exclude, rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [services]`))},

		{rule: "AK203", breaks: true, reason: "Fail", text: validating("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [policy]}]}")},
		{rule: "AK203", breaks: true, reason: "advice for a mutating webhook with Ignore", text: mutating(anywhere, "failurePolicy: Ignore")},
		{rule: "AK203", reason: "excluded", text: cleanMutating},
		{rule: "AK203", reason: "a validating webhook with Ignore", text: validating(anywhere, "failurePolicy: Ignore")},
		{rule: "AK203", reason: "the namespaceSelector is opt-in", text: validating("namespaceSelector: {matchLabels: {policy: enforced}}")},
		{rule: "AK203", reason: "a condition excludes the components of the control plane", text: validating(rule(anyPod), "namespaceSelector: {}", `matchConditions: [{name: a, expression: "!request.namespace.startsWith('kube-')"}]`)},
		{rule: "AK203", reason: "a condition may exclude the Pods of kube-system", text: validating(rule(anyPod), "namespaceSelector: {}", `matchConditions: [{name: a, expression: "!has(object.metadata.labels.critical)"}]`)},

		{rule: "AK204", breaks: true, reason: "Fail", text: validating(exclude, onLeases)},
		{rule: "AK204", breaks: true, reason: "a mutating webhook with Ignore", text: mutating(exclude, onLeases, "failurePolicy: Ignore")},
		{rule: "AK204", reason: "excluded", text: validating(onLeases)},
		{rule: "AK204", reason: "nodes are excluded by a condition", text: validating(exclude, onLeases, `matchConditions: [{name: a, expression: "!('system:nodes' in request.userInfo.groups)"}]`)},
		{rule: "AK204", reason: "a validating webhook with Ignore", text: validating(exclude, onLeases, "failurePolicy: Ignore")},

		{rule: "AK205", breaks: true, reason: "a namespaceSelector does not exclude nodes", text: validating(onNodes)},
		{rule: "AK205", breaks: true, reason: "certificates of kubelets", text: validating(rule(`operations: [CREATE], apiGroups: [certificates.k8s.io], apiVersions: [v1], resources: ["*"]`))},
		{rule: "AK205", reason: "Ignore", text: validating(onNodes, "failurePolicy: Ignore")},
		{rule: "AK205", reason: "a condition excludes nodes", text: validating(onNodes, `matchConditions: [{name: a, expression: "!('system:nodes' in request.userInfo.groups)"}]`)},
		{rule: "AK205", reason: "namespaced objects only", text: validating(rule(`operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], scope: Namespaced`))},
		{rule: "AK205", reason: "DELETE does not stop nodes from joining", text: validating(rule(`operations: [DELETE], apiGroups: [""], apiVersions: [v1], resources: [nodes]`))},

		{rule: "AK206", breaks: true, reason: "wildcards", text: validating(star)},
		{rule: "AK206", breaks: true, reason: "by name, with Ignore", text: validating(rule(`operations: [CREATE], apiGroups: [authorization.k8s.io], apiVersions: [v1], resources: [subjectaccessreviews]`), "failurePolicy: Ignore")},
		{rule: "AK206", breaks: true, reason: "LocalSubjectAccessReview is namespaced", text: validating(namespaced), message: "for localsubjectaccessreviews"},
		{rule: "AK206", reason: "namespaced objects in opt-in namespaces", text: validating(namespaced, optIn)},
		{rule: "AK206", breaks: true, reason: "a pre-release is not the release", text: validating(star), options: Options{Kubernetes: "v1.37.0-alpha.1"}},
		{rule: "AK206", reason: "a vendor suffix is not a pre-release", text: validating(star), options: Options{Kubernetes: "v1.37.0-gke.100"}},
		{rule: "AK206", reason: "an objectSelector excludes objects without labels", text: validating(star, "objectSelector: {matchLabels: {a: b}}")},
		{rule: "AK206", reason: "Kubernetes 1.37 does not call webhooks for reviews", text: validating(star), options: Options{Kubernetes: "v1.37.2"}},
		{rule: "AK206", breaks: true, reason: "Kubernetes 1.36 does", text: validating(star), options: Options{Kubernetes: "1.36"}},
		{rule: "AK206", reason: "groups are named", text: validating(rule(`operations: ["*"], apiGroups: ["", apps], apiVersions: ["*"], resources: ["*"]`))},

		{rule: "AK207", breaks: true, reason: "Fail", text: validating(star)},
		{rule: "AK207", reason: "Ignore", text: validating(star, "failurePolicy: Ignore")},
		{rule: "AK207", reason: "DELETE only", text: validating(rule(`operations: [DELETE], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]`))},
		{rule: "AK207", breaks: true, reason: "no namespaceSelector excludes cluster-scoped objects", text: validating(star, optIn), message: "all cluster-scoped resources of all groups"},
		{rule: "AK207", reason: "namespaced objects only, in opt-in namespaces", text: validating(namespaced, optIn)},
		{rule: "AK207", breaks: true, reason: "namespaces are excluded by a label", text: validating(namespaced, "namespaceSelector: {matchExpressions: [{key: policy, operator: DoesNotExist}]}"), message: "all namespaced resources of all groups, except in namespaces that"},
		{rule: "AK207", breaks: true, reason: "no namespace is excluded", text: validating(star, anywhere), message: "for all resources of all groups"},
		{rule: "AK207", reason: "v1 is not all versions", text: validating(rule(`operations: ["*"], apiGroups: ["*"], apiVersions: [v1], resources: ["*"]`))},
		{rule: "AK207", reason: "objects need a label", text: validating(star, "objectSelector: {matchLabels: {a: b}}")},

		{rule: "AK208", breaks: true, reason: "two", text: join(cleanMutating, other2(other, not("audit")))},
		{rule: "AK208", breaks: true, reason: "a cycle of three", text: join(mutating(not("sidecar, audit")), other2(other, not("audit, third")), other2(third, not("third, sidecar")))},
		{rule: "AK208", reason: "no cycle", text: join(cleanMutating, other2(other, not("audit, sidecar")))},
		{rule: "AK208", reason: "one of them has Ignore", text: join(cleanMutating, strings.Replace(other2(other, not("audit")), "failurePolicy: Fail", "failurePolicy: Ignore", 1))},
		{rule: "AK208", reason: "both are in one namespace: that is AK201", text: join(cleanMutating, strings.Replace(other, "namespace: audit", "namespace: sidecar", 1))},
		{rule: "AK208", reason: "a condition may exclude the pods of the other", text: join(mutating(`matchConditions: [{name: a, expression: "object.metadata.labels['app'] != 'audit'"}]`), other2(other, not("audit")))},

		{rule: "AK209", breaks: true, reason: "the cluster has another Service only", text: join(cleanMutating, strings.Replace(ownService, "name: webhook", "name: other", 1)), options: live},
		{rule: "AK209", breaks: true, reason: "another port", text: join(cleanMutating, strings.Replace(ownService, "443", "8443", 1)), options: live, path: "webhooks[0].clientConfig.service.port"},
		{rule: "AK209", reason: "the Service exists", text: join(cleanMutating, ownService), options: live},
		{rule: "AK209", reason: "files need not have the Service", text: join(cleanMutating, strings.Replace(ownService, "name: webhook", "name: other", 1))},
		{rule: "AK209", reason: "services could not be read", text: cleanMutating, options: live},

		{rule: "AK210", breaks: true, reason: "one", text: join(cleanMutating, ownService, ownDeployment)},
		{rule: "AK210", breaks: true, reason: "the default is one", text: join(cleanMutating, ownService, strings.Replace(ownDeployment, "  replicas: 1\n", "", 1))},
		{rule: "AK210", reason: "two", text: join(cleanMutating, ownService, strings.Replace(ownDeployment, "replicas: 1", "replicas: 2", 1))},
		{rule: "AK210", reason: "a HorizontalPodAutoscaler scales it", text: join(cleanMutating, ownService, ownDeployment, ownScaler)},
		{rule: "AK210", reason: "custom resources only", text: join(mutating(rule(`operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]`)), ownService, ownDeployment)},
	}
}

func other2(text, selector string) string { return changed(text, []string{selector}) }

func surpriseRows() []row {
	crd := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true}, {name: v1beta1, served: true, storage: false}]
`
	withStatus := strings.ReplaceAll(crd, "served: true,", "served: true, subresources: {status: {}},")
	widgets := rule(`operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]`)
	onRules := func(group, version, resource, scope string) string {
		return rule("operations: [CREATE], apiGroups: [" + group + "], apiVersions: [" + version + "], resources: [" + resource + "], scope: " + scope)
	}
	return []row{
		{rule: "AK301", breaks: true, reason: "webhook configurations", text: validating(onRules("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "Cluster")), path: "webhooks[0].rules[0].resources[0]"},
		{rule: "AK301", breaks: true, reason: "the status of admission policies", text: validating(onRules("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies/status", "Cluster")), path: "webhooks[0].rules[0].resources[0]"},
		{rule: "AK301", breaks: true, reason: "1.37 calls no webhook for reviews", text: validating(onRules("authentication.k8s.io", "v1", "tokenreviews, selfsubjectreviews", "Cluster")), options: Options{Kubernetes: "1.37"}, message: "by default", path: "webhooks[0].rules[0].resources"},
		{rule: "AK301", reason: "1.36 does", text: validating(onRules("authentication.k8s.io", "v1", "tokenreviews", "Cluster")), options: Options{Kubernetes: "1.36"}},
		{rule: "AK301", reason: "the version is unknown", text: validating(onRules("authentication.k8s.io", "v1", "tokenreviews", "Cluster"))},
		{rule: "AK301", reason: "the rule has another resource too", text: validating(onRules("authentication.k8s.io, example.com", "v1", "tokenreviews", "Cluster")), options: Options{Kubernetes: "1.37"}},
		{rule: "AK301", reason: "a custom API group", text: validating(onRules("example.com", "v1", "validatingwebhookconfigurations", "Cluster"))},
		{rule: "AK302", breaks: true, reason: "a kind instead of a resource", text: validating(onRules(`""`, "v1", "Pod", `"*"`)), path: "webhooks[0].rules[0].resources[0]"},
		{rule: "AK302", breaks: true, reason: "the core group", text: validating(onRules("core", "v1", "pods", `"*"`)), path: "webhooks[0].rules[0].apiGroups[0]"},
		{rule: "AK302", breaks: true, reason: "group and version in apiGroups", text: validating(onRules("apps/v1", "v1", "deployments", `"*"`))},
		{rule: "AK302", breaks: true, reason: "group and version in apiVersions", text: validating(onRules("apps", "apps/v1", "deployments", `"*"`))},
		{rule: "AK302", breaks: true, reason: "in another group", text: validating(onRules(`""`, "v1", "deployments", `"*"`))},
		{rule: "AK302", breaks: true, reason: "nodes are cluster-scoped", text: validating(onRules(`""`, "v1", "nodes", "Namespaced"))},
		{rule: "AK302", breaks: true, reason: "namespaces are cluster-scoped", text: validating(onRules(`""`, "v1", "namespaces", "Namespaced"))},
		{rule: "AK302", reason: "a custom resource can be called services", text: validating(onRules("serving.example.dev", "v1", "services", `"*"`))},
		{rule: "AK302", reason: "a resource in one of two groups", text: validating(onRules(`"", apps`, "v1", "pods, deployments", "Namespaced"))},
		{rule: "AK302", reason: "events are in two groups", text: validating(onRules("events.k8s.io", "v1", "events", "Namespaced"))},
		{rule: "AK303", breaks: true, reason: "none", text: validating("rules: []")},
		{rule: "AK303", breaks: true, reason: "no rules in a cluster", text: validating("-rules"), options: Options{Live: true}},
		{rule: "AK303", reason: "in a file, a program may add the rules", text: validating("-rules")},
		{rule: "AK303", reason: "one", text: cleanValidating},
		{rule: "AK304", breaks: true, reason: "v1beta1 is served", text: join(validating("matchPolicy: Exact", widgets), crd)},
		{rule: "AK304", breaks: true, reason: "a built-in resource with two versions", text: validating("matchPolicy: Exact", onRules("autoscaling", "v2", "horizontalpodautoscalers", `"*"`))},
		{rule: "AK304", breaks: true, reason: "advice if the versions are unknown", text: validating("matchPolicy: Exact", widgets)},
		{rule: "AK304", breaks: true, reason: "the status in v1beta1 does not match", text: join(validating("matchPolicy: Exact", onRules("example.com", "v1", "widgets/status", `"*"`)), withStatus)},
		{rule: "AK304", reason: "each version of the status is named", text: join(validating("matchPolicy: Exact", onRules("example.com", "v1, v1beta1", "widgets/status", `"*"`)), withStatus)},
		{rule: "AK304", reason: "v1beta1 has no status", text: join(validating("matchPolicy: Exact", onRules("example.com", "v1", "widgets/status", `"*"`)), crd)},
		{rule: "AK304", reason: "each version of the resource and its subresources is named", text: join(validating("matchPolicy: Exact", onRules("example.com", "v1, v1beta1", "widgets/*", `"*"`)), withStatus)},
		{rule: "AK304", reason: "Equivalent", text: join(validating(widgets), crd)},
		{rule: "AK304", reason: "each version is named", text: join(validating("matchPolicy: Exact", strings.Replace(widgets, "[v1]", "[v1, v1beta1]", 1)), crd)},
		{rule: "AK304", reason: "it is not served", text: join(validating("matchPolicy: Exact", widgets), strings.Replace(crd, "v1beta1, served: true", "v1beta1, served: false", 1))},
		{rule: "AK304", reason: "AK305 reports the default of v1beta1", text: old(validating("-matchPolicy", widgets))},
		{rule: "AK304", reason: "pods have one version", text: validating("matchPolicy: Exact")},
		{rule: "AK305", breaks: true, reason: "none set", text: old(mutating("-failurePolicy", "-matchPolicy", "-timeoutSeconds"))},
		{rule: "AK305", reason: "all set", text: old(cleanMutating)},
		{rule: "AK305", reason: "v1", text: mutating("-failurePolicy", "-matchPolicy")},
		{rule: "AK306", breaks: true, reason: "opt out", text: validating("objectSelector: {matchExpressions: [{key: skip, operator: DoesNotExist}]}")},
		{rule: "AK306", reason: "no selector", text: cleanValidating},
		{rule: "AK306", reason: "a mutating webhook may be opt-in", text: mutating("objectSelector: {matchLabels: {inject: \"true\"}}")},
		{rule: "AK307", breaks: true, reason: "UPDATE", text: mutating(strings.Replace(rule(anyPod), "CREATE", "CREATE, UPDATE", 1)), path: "webhooks[0].rules[0].operations[1]"},
		{rule: "AK307", breaks: true, reason: "all resources", text: mutating(rule(`operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: ["*"]`))},
		{rule: "AK307", breaks: true, reason: "all groups, operations and subresources", text: mutating(rule(`operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]`))},
		{rule: "AK307", reason: "subresources of pods only", text: mutating(rule(`operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: ["*/status"]`))},
		{rule: "AK307", reason: "Pods are namespaced", text: mutating(rule(`operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: ["*"], scope: Cluster`))},
		{rule: "AK307", reason: "CREATE", text: cleanMutating},
		{rule: "AK307", reason: "most fields of a Deployment can change", text: mutating(strings.Replace(onRules("apps", "v1", "deployments", `"*"`), "CREATE", "CREATE, UPDATE", 1))},
		{rule: "AK307", reason: "a condition decides", text: mutating(strings.Replace(rule(anyPod), "CREATE", "CREATE, UPDATE", 1), `matchConditions: [{name: a, expression: "request.operation == 'CREATE'"}]`)},
		{rule: "AK308", breaks: true, reason: "DELETE", text: mutating(strings.Replace(rule(anyPod), "CREATE", "CREATE, DELETE", 1)), path: "webhooks[0].rules[0].operations[1]"},
		{rule: "AK308", breaks: true, reason: "any operation", text: mutating(strings.Replace(rule(anyPod), "[CREATE]", `["*"]`, 1)), path: "webhooks[0].rules[0].operations[0]"},
		{rule: "AK308", reason: "a condition may exclude DELETE", text: mutating(strings.Replace(rule(anyPod), "[CREATE]", `["*"]`, 1), `matchConditions: [{name: a, expression: "request.operation != 'DELETE'"}]`)},
		{rule: "AK308", reason: "a validating webhook", text: validating(strings.Replace(rule(anyPod), "CREATE", "CREATE, DELETE", 1))},
		{rule: "AK309", breaks: true, reason: "Some", text: old(mutating("sideEffects: Some"))},
		{rule: "AK309", breaks: true, reason: "not set", text: old(mutating("-sideEffects"))},
		{rule: "AK309", reason: "NoneOnDryRun", text: old(mutating("sideEffects: NoneOnDryRun"))},
		{rule: "AK310", breaks: true, reason: "v1beta1 only", text: mutating("admissionReviewVersions: [v1beta1]")},
		{rule: "AK310", reason: "both", text: mutating("admissionReviewVersions: [v1beta1, v1]")},
		{rule: "AK311", breaks: true, reason: "both are mutating", text: join(cleanMutating, strings.Replace(cleanMutating, "name: sidecar\n", "name: other\n", 1)), path: "webhooks[0].name"},
		{rule: "AK311", reason: "metrics distinguish mutating and validating", text: join(cleanMutating, strings.ReplaceAll(cleanValidating, "policy.example.com", "sidecar.example.com"))},
	}
}

func timingRows() []row {
	slow := func(name, change string) string {
		return strings.NewReplacer("name: sidecar\n", "name: "+name+"\n", "sidecar.example.com", name+".example.com").Replace(mutating("timeoutSeconds: 10", change))
	}
	same := "reinvocationPolicy: Never"
	ten := func(change string) string {
		return join(slow("a", change), slow("b", change), slow("c", change), slow("d", change))
	}
	return []row{
		{rule: "AK401", breaks: true, reason: "none", text: mutating("-timeoutSeconds"), path: "webhooks[0]"},
		{rule: "AK401", reason: "5 seconds", text: cleanMutating},
		{rule: "AK402", breaks: true, reason: "30 seconds", text: mutating("timeoutSeconds: 30"), path: "webhooks[0].timeoutSeconds"},
		{rule: "AK402", reason: "10 seconds", text: mutating("timeoutSeconds: 10")},
		{rule: "AK402", reason: "31 seconds are rejected", text: mutating("timeoutSeconds: 31")},
		{rule: "AK403", breaks: true, reason: "4 times 10", text: ten(same)},
		{rule: "AK403", reason: "3 times 10", text: join(slow("a", same), slow("b", same), slow("c", same))},
		{rule: "AK403", reason: "only one of them matches each namespace", text: ten("namespaceSelector: {matchLabels: {injection: enabled}}")},
		{rule: "AK403", reason: "conditions may exclude requests", text: ten(`matchConditions: [{name: a, expression: "request.operation == 'CREATE'"}]`)},
		{rule: "AK403", reason: "validating webhooks run in parallel", text: strings.ReplaceAll(strings.ReplaceAll(ten(same), "Mutating", "Validating"), "  reinvocationPolicy: Never\n", "")},
		{rule: "AK404", breaks: true, reason: "no proof", text: mutating("reinvocationPolicy: IfNeeded"), path: "webhooks[0].reinvocationPolicy"},
		{rule: "AK404", reason: "proven", text: mutating("reinvocationPolicy: IfNeeded"), options: Options{Proven: []string{"sidecar.example.com"}}},
		{rule: "AK404", reason: "Never", text: cleanMutating},
		{rule: "AK405", breaks: true, reason: "another follows", text: join(slow("a", same), slow("b", same))},
		{rule: "AK405", reason: "another precedes", text: join(slow("b", same), slow("a", "reinvocationPolicy: IfNeeded"))},
		{rule: "AK405", reason: "the other webhook is for other namespaces", text: join(slow("a", same), slow("b", "namespaceSelector: {matchLabels: {injection: enabled}}"))},
	}
}
