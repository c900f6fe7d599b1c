// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// equivalents maps a resource to the versions to which its objects can be converted, for matchPolicy Equivalent.
type equivalents struct {
	objects *Objects
	kind    schema.GroupVersionKind // of the request's object
}

var _ runtime.EquivalentResourceMapper = equivalents{}

func (e equivalents) EquivalentResourcesFor(resource schema.GroupVersionResource, subresource string) []schema.GroupVersionResource {
	all := []schema.GroupVersionResource{resource}
	if r := e.objects.Custom[e.kind.GroupKind()]; r != nil {
		return r.equivalents(resource, subresource)
	}
	if subresource != "" && subresource != "status" {
		return all
	}
	for _, version := range e.objects.versions(e.kind) {
		if version != resource.Version {
			all = append(all, resource.GroupResource().WithVersion(version))
		}
	}
	return all
}

func (e equivalents) KindFor(resource schema.GroupVersionResource, _ string) schema.GroupVersionKind {
	kind := e.kind
	kind.Version = resource.Version
	return kind
}

// equivalents returns the resource in all versions that have the subresource.
func (r *customResource) equivalents(resource schema.GroupVersionResource, subresource string) []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, v := range r.Definition.Spec.Versions {
		if subresource == "" || subresource == "status" && r.Versions[v.Name].HasStatus {
			all = append(all, resource.GroupResource().WithVersion(v.Name))
		}
	}
	return all
}

// versions returns the versions between which this engine can convert objects of the kind in both directions. The
// kind's own version comes first.
func (o *Objects) versions(kind schema.GroupVersionKind) []string {
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

// converts reports whether empty objects of the two kinds can be converted into each other.
func (o *Objects) converts(a, b schema.GroupVersionKind) bool {
	x, errA := o.scheme.New(a)
	y, errB := o.scheme.New(b)
	return errA == nil && errB == nil && o.scheme.Convert(x, y, nil) == nil && o.scheme.Convert(y, x, nil) == nil
}

// servedElsewhere lists the resources that API servers serve in more than one version or group by default. client-go
// cannot convert between them.
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

// NotConverted returns the equivalent resources that this engine cannot convert objects to, although an API server can.
func (o *Objects) NotConverted(resource schema.GroupVersionResource, kind schema.GroupVersionKind) []schema.GroupVersionResource {
	for _, same := range servedElsewhere {
		if slices.Contains(same, resource) {
			return slices.DeleteFunc(slices.Clone(same), func(other schema.GroupVersionResource) bool {
				return other == resource || slices.Contains(o.versions(kind), other.Version) && other.Group == resource.Group
			})
		}
	}
	return nil
}
