// SPDX-License-Identifier: Apache-2.0

// Package workloaddefaults provides a hook that completes the Pod template of every workload. Containers without
// requests get default ones, and the template gets the owner label of its Namespace. So the scheduler knows what each
// Pod needs, and its costs can be charged to an owner. The configuration can list custom workloads.
//
// The hook only adds what is missing. It adds no request for a resource that the container limits, because the request
// could exceed the limit. Nor does it add one for a resource that the Pod as a whole requests or limits
// (spec.resources).
//
// The template of a workload also gets an annotation, which Kubernetes copies to the Pods. The hook skips Pods that
// have the annotation and a controller, because their template has been completed. A Deployment that is older than the
// hook is completed when its template next changes. Until then, the hook completes its Pods. It never changes a
// ReplicaSet or a ReplicationController, only their Pods: see webhook.MutatingPodTemplates.
package workloaddefaults

import (
	"context"
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	// OwnerLabel is the label that the hook copies from a Namespace to the templates of its workloads.
	OwnerLabel = "workloaddefaults.example.com/owner"
	// Annotation marks the templates of workloads that the hook has completed.
	Annotation = "workloaddefaults.example.com/completed"
)

// Hook returns the hook that completes templates. [Load] returns a valid configuration. If one that is written in Go
// has a workload that is not valid, the program stops when it registers the hook.
func Hook(namespaces *reads.Reader[*corev1.Namespace], config Config) *webhook.Hook {
	p := &policy{namespaces, config}
	return webhook.MutatingPodTemplates(admissionregistrationv1.MutatingWebhook{
		Name:               "workloaddefaults.example.com",
		ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
	}, p.complete, config.Workloads...)
}

type policy struct {
	namespaces *reads.Reader[*corev1.Namespace]
	config     Config
}

func (p *policy) complete(ctx context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error {
	template, isPod := req.Object, req.Kind.Kind == "Pod"
	if isPod && req.Controller() != nil && template.Annotations[Annotation] != "" {
		return nil
	}
	namespace, err := p.namespaces.Get(ctx, "", req.Namespace)
	if err != nil {
		return err // a failure: the failurePolicy decides
	}
	if owner := namespace.Labels[OwnerLabel]; owner != "" {
		addMissing(&template.Labels, OwnerLabel, owner)
	}
	if !isPod {
		addMissing(&template.Annotations, Annotation, "true")
	}
	spec := &template.Spec
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			p.addRequests(&list[i].Resources, spec.Resources)
		}
	}
	return nil
}

// addRequests adds the default requests to a container, except for resources that the container or its whole Pod
// requests or limits.
func (p *policy) addRequests(own, whole *corev1.ResourceRequirements) {
	missing := maps.Clone(p.config.Requests)
	for _, set := range []*corev1.ResourceRequirements{own, whole} {
		if set != nil {
			maps.DeleteFunc(missing, func(name corev1.ResourceName, _ resource.Quantity) bool { return has(set, name) })
		}
	}
	for name, quantity := range missing {
		addMissing(&own.Requests, name, quantity.DeepCopy())
	}
}

// has reports whether there is a request or a limit for a resource.
func has(set *corev1.ResourceRequirements, name corev1.ResourceName) bool {
	_, requested := set.Requests[name]
	_, limited := set.Limits[name]
	return requested || limited
}

// addMissing adds an entry to a map, unless the map has this key.
func addMissing[M ~map[K]V, K comparable, V any](to *M, key K, value V) {
	if *to == nil {
		*to = M{}
	}
	if _, ok := (*to)[key]; !ok {
		(*to)[key] = value
	}
}
