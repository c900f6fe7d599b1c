// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// namespaces creates the namespaces that requests need.
type namespaces struct {
	engineID string
	api      *API
	cleaner  *cleaner
	declared map[string]map[string]string // labels by name; nil if every namespace that a request names is created

	mu              sync.Mutex
	exists, created map[string]bool
}

// createDeclared creates the declared namespaces.
func (n *namespaces) createDeclared(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, labels := range n.declared {
		if err := n.create(ctx, name, labels); err != nil {
			return err
		}
	}
	return nil
}

// Need creates a namespace unless it exists. It does nothing if the engine has declared namespaces.
func (n *namespaces) Need(ctx context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.declared != nil || n.exists[name] {
		return nil
	}
	return n.create(ctx, name, nil)
}

func (n *namespaces) create(ctx context.Context, name string, labels map[string]string) error {
	if n.exists == nil {
		n.exists, n.created = map[string]bool{}, map[string]bool{}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{EngineKey: n.engineID}}}
	err := n.api.Write(ctx, http.MethodPost, NamespacesPath, ns)
	switch {
	case apierrors.IsAlreadyExists(err):
		if err := n.compare(ctx, name, labels); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("cannot create namespace %s: %w", name, err)
	default:
		n.created[name] = true
		if err := n.awaitAccount(ctx, name); err != nil {
			return err
		}
	}
	n.exists[name] = true
	return nil
}

// compare checks a namespace that the engine did not create. It returns an error if that namespace is being deleted, or
// lacks one of the labels. The engine never changes such a namespace.
func (n *namespaces) compare(ctx context.Context, name string, labels map[string]string) error {
	var ns corev1.Namespace
	if err := n.api.Get(ctx, NamespacesPath+"/"+name, &ns); err != nil {
		return err
	}
	if ns.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s is being deleted", name)
	}
	for key, value := range labels {
		if ns.Labels[key] != value {
			return fmt.Errorf("namespace %s exists without the label %s=%s", name, key, value)
		}
	}
	return nil
}

// awaitAccount waits until a controller has created the default ServiceAccount, which Pods need. It does not wait if no
// kube-controller-manager runs.
func (n *namespaces) awaitAccount(ctx context.Context, name string) error {
	controllers, err := n.cleaner.haveControllers(ctx)
	if err != nil || !controllers {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := n.api.Get(ctx, NamespacesPath+"/"+name+"/serviceaccounts/default", nil)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func (n *namespaces) removeAll(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for name := range n.created {
		errs = append(errs, n.cleaner.removeCreated(ctx, NamespacesPath+"/"+name))
	}
	return errors.Join(errs...)
}
