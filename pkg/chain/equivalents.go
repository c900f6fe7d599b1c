// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// equivalents are the versions of the resource of a run, for matchPolicy Equivalent: those to
// which its objects can be converted.
type equivalents struct{ run *run }

var _ runtime.EquivalentResourceMapper = equivalents{}

func (e equivalents) EquivalentResourcesFor(resource schema.GroupVersionResource, subresource string) []schema.GroupVersionResource {
	all := []schema.GroupVersionResource{resource}
	if r := e.run.chain.objects.custom[e.run.kind.GroupKind()]; r != nil {
		return r.equivalents(resource, subresource)
	}
	if subresource != "" && subresource != "status" {
		return all
	}
	for _, version := range e.run.chain.objects.versions(e.run.kind) {
		if version != resource.Version {
			all = append(all, resource.GroupResource().WithVersion(version))
		}
	}
	return all
}

func (e equivalents) KindFor(resource schema.GroupVersionResource, _ string) schema.GroupVersionKind {
	kind := e.run.kind
	kind.Version = resource.Version
	return kind
}

// equivalents are all versions of a custom resource that have the subresource.
func (r *customResource) equivalents(resource schema.GroupVersionResource, subresource string) []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, v := range r.Definition.Spec.Versions {
		if subresource == "" || subresource == "status" && r.Versions[v.Name].HasStatus {
			all = append(all, resource.GroupResource().WithVersion(v.Name))
		}
	}
	return all
}

// versions are those to which and from which objects of a kind can be converted, its own among
// them.
func (o *objects) versions(kind schema.GroupVersionKind) []string {
	if known, ok := o.convertible.Load(kind); ok {
		return known.([]string)
	}
	versions := []string{kind.Version}
	if o.added {
		for _, gv := range o.scheme.VersionsForGroupKind(kind.GroupKind()) {
			if gv.Version != runtime.APIVersionInternal && gv.Version != kind.Version && o.converts(kind, gv.WithKind(kind.Kind)) {
				versions = append(versions, gv.Version)
			}
		}
	}
	o.convertible.Store(kind, versions)
	return versions
}

// converts tries it, both ways.
func (o *objects) converts(a, b schema.GroupVersionKind) bool {
	x, errA := o.scheme.New(a)
	y, errB := o.scheme.New(b)
	return errA == nil && errB == nil && o.scheme.Convert(x, y, nil) == nil && o.scheme.Convert(y, x, nil) == nil
}

// servedElsewhere are the resources of Kubernetes that API servers serve in more than one version
// or group, by default. Client-go cannot convert between them.
var servedElsewhere = [][]schema.GroupVersionResource{
	{
		{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"},
		{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	},
	{
		{Version: "v1", Resource: "events"},
		{Group: "events.k8s.io", Version: "v1", Resource: "events"},
	},
}

// notConverted are equivalents of a resource that an API server would have.
func (r *run) notConverted() []schema.GroupVersionResource {
	for _, same := range servedElsewhere {
		if slices.Contains(same, r.resource) {
			return slices.DeleteFunc(slices.Clone(same), func(other schema.GroupVersionResource) bool {
				return other == r.resource || slices.Contains(r.chain.objects.versions(r.kind), other.Version) && other.Group == r.resource.Group
			})
		}
	}
	return nil
}
