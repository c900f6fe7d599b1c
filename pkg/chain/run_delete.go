// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"
)

// holdNamespace lets the selectors of webhooks see the Namespace that a request is about as it is
// stored. When it is created or updated, they see the new one.
func (r *run) holdNamespace() (letGo func()) {
	old, ok := r.old.(*corev1.Namespace)
	if !ok || r.operation == admission.Update && r.SubResource == "" {
		return func() {}
	}
	return r.chain.known.hold(newNamespace(r.namespace, old.Labels))
}

func (r *run) delete() error {
	old, err := meta.Accessor(r.old)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := r.matchNamespace(old); err != nil {
		return err
	}
	if r.kind.Group == batchv1.GroupName && r.kind.Kind == "Job" {
		warning.AddWarning(r.ctx, "", jobWarning)
	}
	r.preconditions(old)
	twice := r.gracePeriod(old)
	if err := r.admitDelete(); err != nil || !twice {
		return err
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	old.SetDeletionTimestamp(&now)
	old.SetDeletionGracePeriodSeconds(ptr.To[int64](0))
	if generation := old.GetGeneration(); generation > 0 {
		old.SetGeneration(generation + 1)
	}
	clear(r.open)
	r.step = 1
	return r.admitDelete()
}

// jobWarning is what the storage of Jobs says to those who do not say what is to become of the Pods.
const jobWarning = "child pods are preserved by default when jobs are deleted; " +
	"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"

// preconditions are those that the storage of Namespaces adds.
func (r *run) preconditions(old metav1.Object) {
	if uid := old.GetUID(); isNamespace(r.resource) && uid != "" {
		r.options.(*metav1.DeleteOptions).Preconditions = &metav1.Preconditions{UID: &uid}
	}
}

// gracePeriod fills in that of a Pod. It reports whether the Pod is deleted at once: that is
// done in two steps, and webhooks are asked about both, unless it is a dry run.
func (r *run) gracePeriod(old metav1.Object) bool {
	pod, ok := r.old.(*corev1.Pod)
	if !ok || old.GetDeletionTimestamp() != nil || r.SubResource != "" {
		return false
	}
	period := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0)
	if r.chain.options.Default == nil && pod.Spec.TerminationGracePeriodSeconds == nil {
		period = corev1.DefaultTerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		period = 0
	} else if period < 0 {
		period = 1
	}
	r.options.(*metav1.DeleteOptions).GracePeriodSeconds = &period
	return period == 0 && len(old.GetFinalizers()) == 0 && !r.DryRun
}

// admitDelete asks both sorts of webhooks about the same attributes.
func (r *run) admitDelete() error {
	a := r.record(nil, r.old.DeepCopyObject())
	if err := r.mutate(a); err != nil {
		return err
	}
	return r.validate(a)
}
