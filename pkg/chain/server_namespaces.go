// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// namespaces are those that requests need.
type namespaces struct {
	engine   *serverEngine
	declared map[string]map[string]string // nil: all that requests name

	mu          sync.Mutex
	there, made map[string]bool

	asking      sync.Mutex
	controllers *bool // whether something runs that empties a namespace that is deleted
}

func (n *namespaces) makeDeclared(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, labels := range n.declared {
		if err := n.make(ctx, name, labels); err != nil {
			return err
		}
	}
	return nil
}

// need makes a namespace unless it is there.
func (n *namespaces) need(ctx context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.declared != nil || n.there[name] {
		return nil
	}
	return n.make(ctx, name, nil)
}

func (n *namespaces) make(ctx context.Context, name string, labels map[string]string) error {
	if n.there == nil {
		n.there, n.made = map[string]bool{}, map[string]bool{}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{engineKey: n.engine.id}}}
	err := n.engine.api.write(ctx, http.MethodPost, namespacesPath, ns)
	switch {
	case apierrors.IsAlreadyExists(err):
		if err := n.compare(ctx, name, labels); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("cannot make namespace %s: %w", name, err)
	default:
		n.made[name] = true
		if err := n.awaitAccount(ctx, name); err != nil {
			return err
		}
	}
	n.there[name] = true
	return nil
}

// compare is for a namespace that was there before, which is left as it is.
func (n *namespaces) compare(ctx context.Context, name string, labels map[string]string) error {
	var ns corev1.Namespace
	if err := n.engine.api.get(ctx, namespacesPath+"/"+name, &ns); err != nil {
		return err
	}
	if ns.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s is being deleted", name)
	}
	for key, value := range labels {
		if ns.Labels[key] != value {
			return fmt.Errorf("namespace %s is there already, without the label %s=%s", name, key, value)
		}
	}
	return nil
}

// awaitAccount waits for the service account that Pods need, where a controller makes it.
func (n *namespaces) awaitAccount(ctx context.Context, name string) error {
	controllers, err := n.haveControllers(ctx)
	if err != nil || !controllers {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := n.engine.api.get(ctx, namespacesPath+"/"+name+"/serviceaccounts/default", nil)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// haveControllers tells a cluster from an API server that is alone.
func (n *namespaces) haveControllers(ctx context.Context) (bool, error) {
	n.asking.Lock()
	defer n.asking.Unlock()
	if n.controllers == nil {
		err := n.engine.api.get(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager", nil)
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		n.controllers = new(err == nil)
	}
	return *n.controllers, nil
}

func (n *namespaces) removeAll(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for name := range n.made {
		errs = append(errs, n.engine.removeMade(ctx, namespacesPath+"/"+name))
	}
	return errors.Join(errs...)
}

// removeMade deletes a namespace or a custom resource definition of an engine and waits until it
// is gone; but where a controller empties namespaces it is left to that.
func (s *serverEngine) removeMade(ctx context.Context, path string) error {
	if err := s.api.remove(ctx, path); err != nil {
		return err
	}
	isNamespace := strings.HasPrefix(path, namespacesPath+"/")
	if isNamespace {
		if controllers, err := s.namespaces.haveControllers(ctx); err != nil || controllers {
			return err
		}
	}
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var left document
		if err := s.api.get(ctx, path, &left); apierrors.IsNotFound(err) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		if isNamespace {
			return false, s.release(ctx, path, left)
		}
		return false, nil
	})
}

// finalize does for a namespace what its controller would do once it is empty.
func (s *serverEngine) finalize(ctx context.Context, path string, namespace document) error {
	spec, _ := namespace["spec"].(map[string]any)
	if finalizers, _ := spec["finalizers"].([]any); len(finalizers) == 0 {
		return nil
	}
	controllers, err := s.namespaces.haveControllers(ctx)
	if err != nil || controllers {
		return err
	}
	namespace["spec"] = map[string]any{}
	return s.api.do(ctx, message{method: http.MethodPut, path: path + "/finalize", body: namespace.encode()}, nil)
}
