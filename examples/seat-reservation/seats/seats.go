// SPDX-License-Identifier: Apache-2.0

// Package seats limits how many Pods use a licensed product at a time. Each of them needs a seat.
//
// A mutating hook marks new Pods with a scheduling gate, so that they cannot run yet. A validating hook reserves a seat
// in the [Ledger], or denies the Pod. A [Reconciler] removes the gates of Pods that have a seat. It also releases the
// seats of Pods that are gone, and the reservations for Pods that were never stored.
package seats

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Options configure the hooks, the ledger and the reconciler.
type Options struct {
	// Seats is the largest number of Pods that may have a seat at a time.
	Seats int
	// Hold is how long a seat stays reserved for a Pod that is not stored yet. If it is too short, a Pod may wait for
	// another seat, but never runs without one.
	Hold time.Duration
}

// New returns the hooks. It adds the reconciler to the background tasks of the program, and declares the permissions
// that both need.
func New(deps *program.Deps, o Options) ([]*webhook.Hook, error) {
	deps.Config.QPS, deps.Config.Burst = 100, 200 // each call of the hook sends two requests
	live, err := client.New(deps.Config, client.Options{})
	if err != nil {
		return nil, err
	}
	ledger := &Ledger{Options: o, ConfigMap: client.ObjectKey{Namespace: deps.Namespace, Name: "seats"}, Client: live}
	deps.Run(manager.RunnableFunc(func(ctx context.Context) error { return run(ctx, deps, ledger) }))
	deps.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "patch"}})
	deps.NeedsIn(deps.Namespace,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"seats"}, Verbs: []string{"get", "list", "watch", "update"}})
	return Hooks(ledger), nil
}

// run runs the reconciler until ctx ends. It watches the marked Pods and the ledger.
func run(ctx context.Context, deps *program.Deps, ledger *Ledger) error {
	ctrl.SetLogger(deps.Logger)
	marked, err := labels.Parse(Mark) // any value
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(deps.Config, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},                    // the program serves metrics
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // tests run several programs in a process
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Label: marked},
			&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{ledger.ConfigMap.Namespace: {}},
				Field:      fields.OneTermEqualSelector(metav1.ObjectNameField, ledger.ConfigMap.Name),
			},
		}},
	})
	if err != nil {
		return err
	}
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: ledger.ConfigMap}} // the same request for all events
	})
	err = ctrl.NewControllerManagedBy(mgr).Named("seats").Watches(&corev1.Pod{}, once).Watches(&corev1.ConfigMap{}, once).
		Complete(&Reconciler{Ledger: ledger, Cache: mgr.GetCache()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
