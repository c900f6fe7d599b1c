// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A servedResource is a resource that the API server serves, as its discovery lists it.
type servedResource struct {
	root       string // /api/v1 or /apis/<group>/<version>
	resource   string
	namespaced bool
	hasStatus  bool // the resource has the status subresource
}

// path returns the path of an object. Without a name, it returns the path of the collection.
func (s servedResource) path(namespace, name string) string {
	p := s.root
	if s.namespaced {
		p += "/namespaces/" + namespace
	}
	p += "/" + s.resource
	if name != "" {
		p += "/" + name
	}
	return p
}

// discovery caches the resources that the API server serves.
type discovery struct {
	api   *API
	mu    sync.Mutex
	lists map[string]metav1.APIResourceList // by root
}

func rootOf(gv metav1.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

func (d *discovery) find(ctx context.Context, gvr metav1.GroupVersionResource, subresource string) (servedResource, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	root := rootOf(metav1.GroupVersion{Group: gvr.Group, Version: gvr.Version})
	name := gvr.Resource
	if subresource != "" {
		name += "/" + subresource
	}
	for _, fresh := range []bool{false, true} {
		list, known := d.lists[root]
		if fresh || !known {
			list = metav1.APIResourceList{}
			if err := d.api.Get(ctx, root, &list); err != nil {
				return servedResource{}, fmt.Errorf("cannot list the resources of the API server, to look up %s in %s: %w", name, root, err)
			}
			if d.lists == nil {
				d.lists = map[string]metav1.APIResourceList{}
			}
			d.lists[root] = list
		}
		if s, ok := lookUp(list, root, gvr.Resource, name); ok {
			return s, nil
		}
	}
	return servedResource{}, fmt.Errorf("the API server has no %s in %s", name, root)
}

func lookUp(list metav1.APIResourceList, root, resource, name string) (servedResource, bool) {
	s, found := servedResource{root: root, resource: resource}, false
	for _, r := range list.APIResources {
		switch r.Name {
		case resource + "/status":
			s.hasStatus = true
		case resource:
			s.namespaced = r.Namespaced
		}
		found = found || r.Name == name
	}
	return s, found
}
