// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Registrations, and helpers of the handlers of Pods and Pod templates.

var (
	podsOnCreate        = hook(webhook.OnCreate("", "v1", "pods"))
	deploymentsOnWrite  = hook(webhook.OnWrite("apps", "v1", "deployments"))
	statefulSetsOnWrite = hook(webhook.OnWrite("apps", "v1", "statefulsets"))
	jobsOnCreate        = hook(webhook.OnCreate("batch", "v1", "jobs"))
	jobsOnWrite         = hook(webhook.OnWrite("batch", "v1", "jobs"))
	cronJobsOnWrite     = hook(webhook.OnWrite("batch", "v1", "cronjobs"))
	servicesOnWrite     = hook(webhook.OnWrite("", "v1", "services"))
	ingressesOnWrite    = hook(webhook.OnWrite("networking.k8s.io", "v1", "ingresses"))
	configMapsOnWrite   = hook(webhook.OnWrite("", "v1", "configmaps"))
	claimsOnCreate      = hook(webhook.OnCreate("", "v1", "persistentvolumeclaims"))
	claimsOnWrite       = hook(webhook.OnWrite("", "v1", "persistentvolumeclaims"))
)

// eachContainer calls do with every container and init container.
func eachContainer(spec *corev1.PodSpec, do func(*corev1.Container)) {
	for i := range spec.InitContainers {
		do(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		do(&spec.Containers[i])
	}
}

// setEnv replaces the variable with this name, or appends it if there is none.
func setEnv(c *corev1.Container, name, value string) {
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	if i < 0 {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
		return
	}
	if c.Env[i].Value != value || c.Env[i].ValueFrom != nil {
		c.Env[i] = corev1.EnvVar{Name: name, Value: value}
	}
}

// defaultEnv appends a variable, unless there is one with this name.
func defaultEnv(c *corev1.Container, name, value string) {
	if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name }) {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

func hasContainer(spec *corev1.PodSpec, name string) bool {
	is := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(spec.Containers, is) || slices.ContainsFunc(spec.InitContainers, is)
}

// repository returns the last part of an image's path, without the tag and the digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndex(image, "/")+1:]
	image, _, _ = strings.Cut(image, ":")
	return image
}

// addContainer returns an edit that appends a container to the list at a path, by default that of a Pod.
func addContainer(container object, path ...any) edit {
	if len(path) == 0 {
		path = []any{"spec", "containers"}
	}
	return func(o object) { push(o, clone(container), path...) }
}

// inTemplate is the path of the containers in a Deployment, StatefulSet or Job.
var inTemplate = []any{"spec", "template", "spec", "containers"}

// lateContainer is a container that another party adds.
var lateContainer = object{"name": "late", "image": "registry.example.com/tools/late:1.4"}

// podHead is the beginning of all samples of Pods.
const podHead = "apiVersion: v1\nkind: Pod\n"
