// SPDX-License-Identifier: Apache-2.0

package seats

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Reconciler makes the ledger match the stored Pods, and removes the gates of the Pods that have a seat. Several
// replicas may run it at once, because each of its writes depends on the version that it has read.
type Reconciler struct {
	Ledger *Ledger
	// Cache reads the marked Pods.
	Cache client.Reader
}

// Reconcile updates the whole ledger, and then removes the gates of all Pods that have a seat. It does not depend on
// earlier runs, so it may be stopped at any point and start again.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var marked corev1.PodList
	if err := r.Cache.List(ctx, &marked); err != nil {
		return reconcile.Result{}, err
	}
	var seated []*corev1.Pod
	var next time.Duration // until the next reservation expires
	err := r.Ledger.change(ctx, func(taken entries) (err error) {
		seated = nil
		if next, err = r.release(ctx, taken); err != nil {
			return err
		}
		for i := range marked.Items {
			if pod := &marked.Items[i]; gated(pod) && r.Ledger.take(taken, pod, time.Time{}) {
				seated = append(seated, pod)
			}
		}
		return nil
	}, func(write func() error) error { return write() })
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, pod := range seated {
		if err := r.removeGate(ctx, pod); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// release removes the entries of Pods that need no seat, and confirms the reservations of stored Pods. It returns the
// time until the next remaining reservation expires, or zero if there is none.
func (r *Reconciler) release(ctx context.Context, taken entries) (next time.Duration, err error) {
	for uid, e := range taken {
		pod, err := r.find(ctx, uid, e)
		if err != nil {
			return 0, err
		}
		switch left := time.Until(e.Expires); {
		case pod == nil && left > 0: // the request may still be running
			if next == 0 || left < next {
				next = left
			}
		case pod == nil, pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
			delete(taken, uid)
		default:
			taken[uid] = entry{Namespace: e.Namespace, Name: e.Name}
		}
	}
	return next, nil
}

// find returns the Pod of an entry, or nil if it does not exist. The cache may lag behind, so find asks the API server
// before it returns nil. A Pod with the same name but another UID is another Pod.
func (r *Reconciler) find(ctx context.Context, uid types.UID, e entry) (*corev1.Pod, error) {
	for _, reader := range []client.Reader{r.Cache, r.Ledger.Client} {
		pod := &corev1.Pod{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, pod)
		switch {
		case err == nil && pod.UID == uid:
			return pod, nil
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		}
	}
	return nil, nil
}

// removeGate removes the gate, so that the scheduler considers the Pod. If the Pod has changed or is gone, removeGate
// returns nil, because another event follows.
func (r *Reconciler) removeGate(ctx context.Context, pod *corev1.Pod) error {
	before := pod.DeepCopy()
	pod.Spec.SchedulingGates = slices.DeleteFunc(pod.Spec.SchedulingGates, isMark)
	err := r.Ledger.Client.Patch(ctx, pod, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
