// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// with returns a copy of the map with one more entry. It does not change m, because other objects may share it.
func with(m map[string]string, key, value string) map[string]string {
	c := make(map[string]string, len(m)+1)
	maps.Copy(c, m)
	c[key] = value
	return c
}

func withFinalizer(all []corev1.FinalizerName) []corev1.FinalizerName {
	if slices.Contains(all, corev1.FinalizerKubernetes) {
		return all
	}
	return append(slices.Clone(all), corev1.FinalizerKubernetes)
}

func onlyNames(o *corev1.ServiceAccount) {
	for i, secret := range o.Secrets {
		o.Secrets[i] = corev1.ObjectReference{Name: secret.Name}
	}
}

// gated sets the condition PodScheduled of a Pod that has scheduling gates.
func gated(o *corev1.Pod) {
	if len(o.Spec.SchedulingGates) > 0 {
		now := metav1.Now()
		o.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: now,
			Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
}

// selectOwnPods sets the labels and the selector by which a Job finds its Pods, unless manualSelector is true
// (generateSelector).
func selectOwnPods(o *batchv1.Job) {
	if ptr.Deref(o.Spec.ManualSelector, false) {
		return
	}
	labels := map[string]string{
		"job-name": o.Name, batchv1.JobNameLabel: o.Name,
		"controller-uid": string(o.UID), batchv1.ControllerUidLabel: string(o.UID),
	}
	maps.Copy(labels, o.Spec.Template.Labels)
	o.Spec.Template.Labels = labels
	if o.Spec.Selector == nil {
		o.Spec.Selector = &metav1.LabelSelector{}
	}
	if _, ok := o.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !ok {
		o.Spec.Selector.MatchLabels = with(o.Spec.Selector.MatchLabels, batchv1.ControllerUidLabel, string(o.UID))
	}
}

// sources makes dataSource and dataSourceRef of a PersistentVolumeClaim agree (EnforceDataSourceBackwardsCompatibility
// and NormalizeDataSources).
func sources(spec, old *corev1.PersistentVolumeClaimSpec) {
	inUse := old != nil && (old.DataSource != nil || old.DataSourceRef != nil)
	if !inUse && spec.DataSourceRef == nil && spec.DataSource != nil {
		kind, group := spec.DataSource.Kind, ptr.Deref(spec.DataSource.APIGroup, "")
		if !(kind == "PersistentVolumeClaim" && group == "") && !(kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io") {
			spec.DataSource = nil
		}
	}
	switch source, ref := spec.DataSource, spec.DataSourceRef; {
	case source != nil && ref == nil:
		spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	case ref != nil && source == nil && ptr.Deref(ref.Namespace, "") == "":
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

// podQOS returns the QoS class of a Pod (GetPodQOS).
func podQOS(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	guaranteed := true
	add := func(r corev1.ResourceRequirements) {
		addCompute(requests, r.Requests)
		guaranteed = guaranteed && addCompute(limits, r.Limits) == 2
	}
	if own := pod.Spec.Resources; own != nil {
		addCompute(requests, own.Requests)
		guaranteed = len(own.Limits) == 0 || addCompute(limits, own.Limits) == 2
	} else {
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			add(c.Resources)
		}
	}
	switch {
	case len(requests) == 0 && len(limits) == 0:
		return corev1.PodQOSBestEffort
	case !guaranteed || len(requests) != len(limits):
		return corev1.PodQOSBurstable
	}
	for name, request := range requests {
		if limit, ok := limits[name]; !ok || limit.Cmp(request) != 0 {
			return corev1.PodQOSBurstable
		}
	}
	return corev1.PodQOSGuaranteed
}

// addCompute adds the CPU and the memory in more to sum, since only these count for the QoS class. It returns how many
// of the two are set.
func addCompute(sum, more corev1.ResourceList) int {
	n := 0
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		q, ok := more[name]
		if !ok || q.Sign() <= 0 {
			continue
		}
		n++
		q = q.DeepCopy()
		q.Add(sum[name])
		sum[name] = q
	}
	return n
}
