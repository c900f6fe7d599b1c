// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// servedResource is a resource as the API server tells of it.
type servedResource struct {
	root       string // /api/v1 or /apis/<group>/<version>
	resource   string
	namespaced bool
	hasStatus  bool // a subresource
	builtIn    bool
}

// path is that of an object, or of the collection without a name.
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

// discovery remembers what the API server serves.
type discovery struct {
	engine *serverEngine
	mu     sync.Mutex
	lists  map[string]metav1.APIResourceList // by root
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
			if err := d.engine.api.get(ctx, root, &list); err != nil {
				return servedResource{}, fmt.Errorf("cannot tell whether the API server has %s in %s: %w", name, root, err)
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
