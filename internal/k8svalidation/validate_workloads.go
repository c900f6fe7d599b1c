// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkDeployment(c *checker, o *appsv1.Deployment) {
	spec := &o.Spec
	notNegativeIf(c, specPath, "replicas", spec.Replicas)
	notNegativeIf(c, specPath, "revisionHistoryLimit", spec.RevisionHistoryLimit)
	c.notNegative(specPath, "minReadySeconds", int64(spec.MinReadySeconds))
	deadline := int32(600)
	if spec.ProgressDeadlineSeconds != nil {
		deadline = *spec.ProgressDeadlineSeconds
	}
	if deadline < 0 || deadline <= spec.MinReadySeconds {
		c.invalid(specPath.Child("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds")
	}
	checkSelector(c, spec.Selector, spec.Template.Labels)
	c.template(templatePath, &spec.Template, true)
	at := specPath.Child("strategy")
	enum(c, at, "type", spec.Strategy.Type, appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType)
	update := spec.Strategy.RollingUpdate
	if update == nil {
		return
	}
	if spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		c.forbidden(at.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'")
		return
	}
	at = at.Child("rollingUpdate")
	checkShare(c, at, "maxUnavailable", update.MaxUnavailable, true)
	checkShare(c, at, "maxSurge", update.MaxSurge, false)
	if isNone(update.MaxUnavailable) && isNone(update.MaxSurge) {
		c.invalid(at.Child("maxUnavailable"), update.MaxUnavailable, "may not be 0 when `maxSurge` is 0")
	}
}

// checkShare checks a number of pods or a percentage. With part, it rejects percentages above 100%.
func checkShare(c *checker, at *field.Path, child string, v *intstr.IntOrString, part bool) {
	switch {
	case v == nil:
	case v.Type == intstr.Int:
		c.notNegative(at, child, int64(v.IntVal))
	case validation.IsValidPercent(v.StrVal) != nil:
		c.invalid(at.Child(child), v, validation.IsValidPercent(v.StrVal)...)
	case part && percent(v) > 100:
		c.invalid(at.Child(child), v, "must not be greater than 100%")
	}
}

func percent(v *intstr.IntOrString) int {
	n, _ := intstr.GetScaledValueFromIntOrPercent(v, 100, false)
	return n
}

func isNone(v *intstr.IntOrString) bool { return v != nil && percent(v) == 0 }

// checkSelector checks that a selector is present, valid, and matches the labels of the pod template.
func checkSelector(c *checker, s *metav1.LabelSelector, podLabels map[string]string) {
	at := specPath.Child("selector")
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		c.required(at, "a selector that is missing or empty is invalid")
		return
	}
	c.selector(at, s)
	if !matches(s, podLabels) {
		c.invalid(templatePath.Child("metadata", "labels"), podLabels, "`selector` does not match template `labels`")
	}
}

func matches(s *metav1.LabelSelector, podLabels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if got, ok := podLabels[key]; !ok || got != value {
			return false
		}
	}
	if len(s.MatchExpressions) == 0 {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err != nil || selector.Matches(labels.Set(podLabels)) // an invalid selector has its own error
}

func checkReplicaSet(c *checker, o *appsv1.ReplicaSet) {
	notNegativeIf(c, specPath, "replicas", o.Spec.Replicas)
	c.notNegative(specPath, "minReadySeconds", int64(o.Spec.MinReadySeconds))
	checkSelector(c, o.Spec.Selector, o.Spec.Template.Labels)
	c.template(templatePath, &o.Spec.Template, true)
}

func checkDaemonSet(c *checker, o *appsv1.DaemonSet) {
	spec := &o.Spec
	notNegativeIf(c, specPath, "revisionHistoryLimit", spec.RevisionHistoryLimit)
	c.notNegative(specPath, "minReadySeconds", int64(spec.MinReadySeconds))
	checkSelector(c, spec.Selector, spec.Template.Labels)
	c.template(templatePath, &spec.Template, true)
	at := specPath.Child("updateStrategy")
	enum(c, at, "type", spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType)
	update := spec.UpdateStrategy.RollingUpdate
	if update == nil || spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return
	}
	at = at.Child("rollingUpdate")
	checkShare(c, at, "maxUnavailable", update.MaxUnavailable, true)
	checkShare(c, at, "maxSurge", update.MaxSurge, true)
	unavailable := update.MaxUnavailable == nil || !isNone(update.MaxUnavailable)
	surge := update.MaxSurge != nil && !isNone(update.MaxSurge)
	if unavailable && surge {
		c.invalid(at.Child("maxSurge"), update.MaxSurge, "may not be set when maxUnavailable is non-zero")
	} else if !unavailable && !surge {
		c.required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0")
	}
}

func checkStatefulSet(c *checker, o *appsv1.StatefulSet) {
	spec := &o.Spec
	notNegativeIf(c, specPath, "replicas", spec.Replicas)
	c.notNegative(specPath, "minReadySeconds", int64(spec.MinReadySeconds))
	if spec.Ordinals != nil {
		c.notNegative(specPath, "ordinals.start", int64(spec.Ordinals.Start))
	}
	if !c.isUpdate && spec.ServiceName != "" {
		c.invalid(specPath.Child("serviceName"), spec.ServiceName, badLabel(spec.ServiceName)...)
	}
	for i := range spec.VolumeClaimTemplates {
		if !c.isUpdate {
			checkClaimSpec(c, specPath.Child("volumeClaimTemplates").Index(i).Child("spec"), &spec.VolumeClaimTemplates[i].Spec)
		}
	}
	checkSelector(c, spec.Selector, spec.Template.Labels)
	pods := identified(spec)
	c.template(templatePath, &pods, true)
	enum(c, specPath, "podManagementPolicy", spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)
	checkUpdateStrategy(c, specPath.Child("updateStrategy"), &spec.UpdateStrategy)
	if keep := spec.PersistentVolumeClaimRetentionPolicy; keep != nil {
		at := specPath.Child("persistentVolumeClaimRetentionPolicy")
		enum(c, at, "whenDeleted", keep.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
		enum(c, at, "whenScaled", keep.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	}
}

// identified returns the template with the fields that the controller sets in each pod: the host
// name, and a volume for each volume claim template.
func identified(spec *appsv1.StatefulSetSpec) corev1.PodTemplateSpec {
	t := spec.Template
	t.Spec.Hostname, t.Spec.Subdomain = "", ""
	var names seen[string]
	var claimed []corev1.Volume
	for i := range spec.VolumeClaimTemplates {
		if name := spec.VolumeClaimTemplates[i].Name; names.add(name) {
			source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
			claimed = append(claimed, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}})
		}
	}
	if claimed == nil {
		return t
	}
	own := slices.DeleteFunc(slices.Clone(t.Spec.Volumes), func(v corev1.Volume) bool { return names.has(v.Name) })
	t.Spec.Volumes = slices.Concat(own, claimed)
	return t
}

func checkUpdateStrategy(c *checker, at *field.Path, s *appsv1.StatefulSetUpdateStrategy) {
	enum(c, at, "type", s.Type, appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)
	update := s.RollingUpdate
	if update == nil {
		return
	}
	at = at.Child("rollingUpdate")
	if s.Type == appsv1.OnDeleteStatefulSetStrategyType {
		c.invalid(at, "", "only allowed for updateStrategy 'RollingUpdate'")
		return
	}
	notNegativeIf(c, at, "partition", update.Partition)
}

func checkReplicationController(c *checker, o *corev1.ReplicationController) {
	notNegativeIf(c, specPath, "replicas", o.Spec.Replicas)
	c.notNegative(specPath, "minReadySeconds", int64(o.Spec.MinReadySeconds))
	if o.Spec.Template == nil {
		c.required(templatePath, "")
		return
	}
	podLabels := o.Spec.Template.Labels
	if len(o.Spec.Selector) == 0 && len(podLabels) == 0 {
		c.required(specPath.Child("selector"), "")
	}
	if !matches(&metav1.LabelSelector{MatchLabels: o.Spec.Selector}, podLabels) {
		c.invalid(templatePath.Child("metadata", "labels"), podLabels, "`selector` does not match template `labels`")
	}
	c.template(templatePath, o.Spec.Template, true)
}
