// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A kind is a resource that the cases use, with functions that create and change an object.
type kind struct {
	name   string
	gvr    metav1.GroupVersionResource
	object func(r *rand.Rand) map[string]any
	// edit changes the specification of an object, for an update.
	edit func(object map[string]any)
	// global is true for a cluster-scoped kind.
	global bool
}

var kinds = []kind{
	{name: "pods", gvr: core("pods"), object: pod, edit: set("spec.terminationGracePeriodSeconds", 7)},
	{name: "pods", gvr: core("pods"), object: pod, edit: set("spec.containers.0.image", "example.com/app:2")},
	{name: "configmaps", gvr: core("configmaps"), object: configMap, edit: set("data", map[string]any{"key": "new"})},
	{name: "secrets", gvr: core("secrets"), object: secret, edit: set("stringData", map[string]any{"more": "new"})},
	{name: "serviceaccounts", gvr: core("serviceaccounts"), object: serviceAccount, edit: set("automountServiceAccountToken", true)},
	{name: "persistentvolumeclaims", gvr: core("persistentvolumeclaims"), object: claim},
	{name: "replicationcontrollers", gvr: core("replicationcontrollers"), object: controller, edit: set("spec.replicas", 3)},
	{name: "podtemplates", gvr: core("podtemplates"), object: podTemplate, edit: set("template.spec.hostNetwork", true)},
	{name: "namespaces", gvr: core("namespaces"), object: namespace, global: true},
	{name: "deployments", gvr: of("apps", "v1", "deployments"), object: workload("Deployment"), edit: set("spec.replicas", 3)},
	{name: "replicasets", gvr: of("apps", "v1", "replicasets"), object: workload("ReplicaSet"), edit: set("spec.replicas", 3)},
	{name: "statefulsets", gvr: of("apps", "v1", "statefulsets"), object: workload("StatefulSet"), edit: set("spec.replicas", 3)},
	{name: "daemonsets", gvr: of("apps", "v1", "daemonsets"), object: workload("DaemonSet"), edit: set("spec.template.spec.containers.0.image", "example.com/app:2")},
	{name: "daemonsets", gvr: of("apps", "v1", "daemonsets"), object: workload("DaemonSet"), edit: set("spec.minReadySeconds", 3)},
	{name: "jobs", gvr: of("batch", "v1", "jobs"), object: job, edit: set("spec.parallelism", 3)},
	{name: "cronjobs", gvr: of("batch", "v1", "cronjobs"), object: cronJob, edit: set("spec.suspend", true)},
	{name: "autoscalers", gvr: of("autoscaling", "v2", "horizontalpodautoscalers"), object: autoscaler, edit: set("spec.maxReplicas", 4)},
	{name: "ingresses", gvr: of("networking.k8s.io", "v1", "ingresses"), object: ingress, edit: set("spec.defaultBackend.service.name", "b")},
	{name: "widgets", gvr: of("diff.example.com", "v1", "widgets"), object: widget("v1"), edit: set("spec.size", 2)},
	{name: "widgets", gvr: of("diff.example.com", "v1", "widgets"), object: widget("v1"), edit: set("spec.color", "green")},
	{name: "widgets", gvr: of("diff.example.com", "v1alpha1", "widgets"), object: widget("v1alpha1"), edit: set("spec.size", 2)},
}

func of(group, version, resource string) metav1.GroupVersionResource {
	return metav1.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

func core(resource string) metav1.GroupVersionResource { return of("", "v1", resource) }

// set returns a function that sets the value at a path. It copies the parents, which the old object shares.
func set(path string, value any) func(map[string]any) {
	return func(object map[string]any) { object[first(path)] = replaced(object[first(path)], rest(path), value) }
}

func first(path string) string { name, _, _ := strings.Cut(path, "."); return name }

func rest(path string) string { _, after, _ := strings.Cut(path, "."); return after }

func replaced(whole any, path string, value any) any {
	if path == "" {
		return value
	}
	switch whole := whole.(type) {
	case []any:
		c := slices.Clone(whole)
		i, _ := strconv.Atoi(first(path)) // all paths are constants of this package
		c[i] = replaced(c[i], rest(path), value)
		return c
	case map[string]any:
		c := maps.Clone(whole)
		c[first(path)] = replaced(c[first(path)], rest(path), value)
		return c
	}
	return map[string]any{first(path): replaced(nil, rest(path), value)}
}

func pod(r *rand.Rand) map[string]any {
	spec := map[string]any{"containers": []any{container(r, "app")}}
	if r.IntN(3) == 0 {
		spec["initContainers"] = []any{container(r, "init")}
		spec["volumes"] = []any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}
}

func container(r *rand.Rand, name string) map[string]any {
	c := map[string]any{"name": name, "image": "example.com/" + name + ":1"}
	if r.IntN(2) == 0 {
		c["resources"] = map[string]any{"requests": map[string]any{"cpu": []string{"100m", "0.1", "1"}[r.IntN(3)]}, "limits": map[string]any{"memory": "64Mi"}}
	}
	if r.IntN(3) == 0 {
		c["ports"] = []any{map[string]any{"containerPort": 8080}}
	}
	return c
}

func configMap(r *rand.Rand) map[string]any {
	o := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	if r.IntN(2) == 0 {
		o["data"] = map[string]any{"key": fmt.Sprint(r.IntN(10))}
	}
	return o
}

// template returns a pod template with the label that the selectors of workloads select.
func template(r *rand.Rand) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}, "spec": pod(r)["spec"]}
}

func workload(kind string) func(*rand.Rand) map[string]any {
	return func(r *rand.Rand) map[string]any {
		spec := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}, "template": template(r)}
		if kind == "StatefulSet" {
			spec["serviceName"] = "a"
		}
		return map[string]any{"apiVersion": "apps/v1", "kind": kind, "spec": spec}
	}
}

func controller(r *rand.Rand) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ReplicationController", "spec": map[string]any{"template": template(r)}}
}

func podTemplate(r *rand.Rand) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "template": template(r)}
}

func jobSpec(r *rand.Rand) map[string]any {
	t := template(r)
	t["spec"].(map[string]any)["restartPolicy"] = "Never"
	return map[string]any{"template": t}
}

func job(r *rand.Rand) map[string]any {
	return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": jobSpec(r)}
}

func cronJob(r *rand.Rand) map[string]any {
	return map[string]any{"apiVersion": "batch/v1", "kind": "CronJob", "spec": map[string]any{"schedule": "0 0 * * *", "jobTemplate": map[string]any{"spec": jobSpec(r)}}}
}

func secret(r *rand.Rand) map[string]any {
	o := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"key": "dmFsdWU="}}
	if r.IntN(2) == 0 {
		o["stringData"] = map[string]any{"plain": "text"}
	}
	return o
}

func serviceAccount(r *rand.Rand) map[string]any {
	o := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}
	if r.IntN(2) == 0 {
		o["secrets"] = []any{map[string]any{"name": "a", "kind": "Secret"}}
	}
	return o
}

func claim(r *rand.Rand) map[string]any {
	spec := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
	switch r.IntN(4) {
	case 0:
		spec["dataSource"] = map[string]any{"kind": "PersistentVolumeClaim", "name": "other"}
	case 1:
		spec["dataSource"] = map[string]any{"apiGroup": "example.com", "kind": "Dump", "name": "other"}
	case 2:
		spec["dataSourceRef"] = map[string]any{"apiGroup": "example.com", "kind": "Dump", "name": "other"}
	}
	return map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec}
}

func ingress(*rand.Rand) map[string]any {
	return map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": map[string]any{
		"defaultBackend": map[string]any{"service": map[string]any{"name": "a", "port": map[string]any{"number": 80}}},
	}}
}

func autoscaler(*rand.Rand) map[string]any {
	return map[string]any{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": map[string]any{
		"maxReplicas": 3, "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
	}}
}

func namespace(*rand.Rand) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace"}
}

func widget(version string) func(*rand.Rand) map[string]any {
	return func(r *rand.Rand) map[string]any {
		spec := map[string]any{"color": []string{"red", "blue", "green"}[r.IntN(3)]}
		if r.IntN(2) == 0 {
			spec["size"] = r.IntN(9)
		}
		if r.IntN(2) == 0 {
			spec["free"] = map[string]any{"any": []any{1, "x", map[string]any{}}}
		}
		if r.IntN(3) == 0 {
			spec["parts"] = []any{map[string]any{"name": "a"}, map[string]any{"name": "b", "pruned": true}}
		}
		o := map[string]any{"apiVersion": "diff.example.com/" + version, "kind": "Widget", "spec": spec}
		if r.IntN(3) == 0 {
			o["status"] = map[string]any{"phase": "New"}
		}
		return o
	}
}
