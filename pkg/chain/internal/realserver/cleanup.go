// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A cleaner deletes the objects that engines created.
type cleaner struct {
	api *API

	mu          sync.Mutex
	controllers *bool // whether a controller manager runs; nil if not known yet
}

// haveControllers reports whether a kube-controller-manager runs, as in a cluster.
func (c *cleaner) haveControllers(ctx context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.controllers == nil {
		err := c.api.Get(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager", nil)
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		c.controllers = new(err == nil)
	}
	return *c.controllers, nil
}

// removeCreated deletes a namespace or a CustomResourceDefinition of an engine and waits until it is gone. It does not
// wait for a namespace if a controller deletes the objects in it.
func (c *cleaner) removeCreated(ctx context.Context, path string) error {
	if err := c.api.Remove(ctx, path); err != nil {
		return err
	}
	isNamespace := strings.HasPrefix(path, NamespacesPath+"/")
	if isNamespace {
		if controllers, err := c.haveControllers(ctx); err != nil || controllers {
			return err
		}
	}
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var left Document
		if err := c.api.Get(ctx, path, &left); apierrors.IsNotFound(err) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		if isNamespace {
			return false, c.release(ctx, path, left)
		}
		return false, nil
	})
}

// finalize removes the finalizers of a namespace, as the namespace controller does once the namespace is empty.
func (c *cleaner) finalize(ctx context.Context, path string, namespace Document) error {
	spec, _ := namespace["spec"].(map[string]any)
	if finalizers, _ := spec["finalizers"].([]any); len(finalizers) == 0 {
		return nil
	}
	controllers, err := c.haveControllers(ctx)
	if err != nil || controllers {
		return err
	}
	namespace["spec"] = map[string]any{}
	return c.api.Do(ctx, Message{Method: http.MethodPut, Path: path + "/finalize", Body: namespace.Encode()}, nil)
}

// removeObject deletes the object, removes its finalizers, and waits until it is gone. If another object has taken
// its name, that object stays.
func (c *cleaner) removeObject(ctx context.Context, kind servedResource, namespace string, object Document) error {
	path := kind.path(namespace, object.meta("name"))
	uid := object.meta("uid")
	body := encodeJSON(map[string]any{
		"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "propagationPolicy": metav1.DeletePropagationBackground,
		"preconditions": map[string]any{"uid": uid},
	})
	deleted := false
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if !deleted {
			err := c.api.Do(ctx, Message{Method: http.MethodDelete, Path: path, Body: body}, nil)
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it is gone, or another object has its name
				return true, nil
			} else if err != nil {
				return false, err
			}
			deleted = true
		}
		var left Document
		if err := c.api.Get(ctx, path, &left); apierrors.IsNotFound(err) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		if left.meta("uid") != uid {
			return true, nil
		}
		return false, c.release(ctx, path, left)
	})
}

// release removes the finalizers of an object that is being deleted.
func (c *cleaner) release(ctx context.Context, path string, object Document) error {
	var err error
	if finalizers, _ := object.metadata()["finalizers"].([]any); len(finalizers) > 0 {
		err = c.api.Do(ctx, Message{
			Method: http.MethodPatch, Path: path, contentType: "application/merge-patch+json",
			Body: encodeJSON(map[string]any{"metadata": map[string]any{"finalizers": nil, "resourceVersion": object.meta("resourceVersion")}}),
		}, nil)
	} else if strings.HasPrefix(path, NamespacesPath+"/") && strings.Count(path, "/") == strings.Count(NamespacesPath, "/")+1 {
		err = c.finalize(ctx, path, object)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
