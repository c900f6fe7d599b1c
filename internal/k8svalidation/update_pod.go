// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A podUpdateCheck checks the changes of a Pod. Most fields of its spec must not change.
type podUpdateCheck struct {
	*checker
	pod, old *corev1.Pod
}

func (c *podUpdateCheck) check() {
	c.annotations()
	spec, was := &c.pod.Spec, &c.old.Spec
	if equality.Semantic.DeepEqual(spec, was) {
		return
	}
	same := len(spec.Containers) == len(was.Containers)
	if !same {
		c.forbidden(specPath.Child("containers"), "pod updates may not add or remove containers")
	} else if len(spec.InitContainers) != len(was.InitContainers) {
		same = false
		c.forbidden(specPath.Child("initContainers"), "pod updates may not add or remove containers")
	}
	c.deadline()
	c.tolerations()
	c.gates()
	if same { // otherwise the error about the number of containers is enough
		c.frozen()
	}
}

// annotations checks the annotations for security settings and for the origin of a Pod.
func (c *podUpdateCheck) annotations() {
	now, was := c.pod.Annotations, c.old.Annotations
	for _, maps := range [...][2]map[string]string{{now, was}, {was, now}} {
		for key, value := range maps[0] {
			fixed := strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) || key == corev1.MirrorPodAnnotationKey
			if !fixed {
				continue
			}
			if other, ok := maps[1][key]; !ok || other != value {
				c.forbidden(metadataPath.Child("annotations").Key(key), "may not add, remove or update this annotation")
			}
		}
	}
}

func (c *podUpdateCheck) deadline() {
	now, was := c.pod.Spec.ActiveDeadlineSeconds, c.old.Spec.ActiveDeadlineSeconds
	at := specPath.Child("activeDeadlineSeconds")
	switch {
	case was == nil:
	case now == nil:
		c.invalid(at, now, "must not update from a positive integer to nil value")
	case *now > *was:
		c.invalid(at, *now, "must be less than or equal to previous value")
	}
}

// tolerations checks tolerations. Only tolerationSeconds may change in an existing one.
func (c *podUpdateCheck) tolerations() {
	now, was := c.pod.Spec.Tolerations, c.old.Spec.Tolerations
	for i := range was {
		if !tolerated(now, was[i]) {
			c.forbidden(specPath.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
}

func tolerated(list []corev1.Toleration, t corev1.Toleration) bool {
	for _, other := range list {
		if other.TolerationSeconds = t.TolerationSeconds; other == t {
			return true
		}
	}
	return false
}

func (c *podUpdateCheck) gates() {
	now, was := c.pod.Spec.SchedulingGates, c.old.Spec.SchedulingGates
	var had seen[string]
	for _, gate := range was {
		had.add(gate.Name)
	}
	for i, gate := range now {
		if !had.has(gate.Name) {
			c.forbidden(specPath.Child("schedulingGates").Index(i).Child("name"), "only deletion is allowed, but found new scheduling gate '"+gate.Name+"'")
		}
	}
}

// frozen copies the mutable fields from the old spec and then requires that the specs are equal.
func (c *podUpdateCheck) frozen() {
	spec, old := &c.pod.Spec, &c.old.Spec
	was := old.DeepCopy()
	for i := range was.Containers {
		was.Containers[i].Image = spec.Containers[i].Image
	}
	for i := range was.InitContainers {
		was.InitContainers[i].Image = spec.InitContainers[i].Image
	}
	was.ActiveDeadlineSeconds = spec.ActiveDeadlineSeconds
	was.Tolerations = spec.Tolerations
	was.SchedulingGates = spec.SchedulingGates
	if grace := was.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		was.TerminationGracePeriodSeconds = new(int64(1))
	}
	if len(old.SchedulingGates) > 0 {
		c.nodeSelector(spec.NodeSelector, was.NodeSelector)
		c.nodeTerms(requiredTerms(spec), requiredTerms(was))
		was.NodeSelector = spec.NodeSelector
		takeNodeAffinity(was, spec)
	}
	if equality.Semantic.DeepEqual(spec, was) {
		return
	}
	c.add(field.Forbidden(specPath, "pod updates may not change fields other than images, activeDeadlineSeconds, tolerations (only additions)"+
		" and terminationGracePeriodSeconds (to 1 if it was negative); changed: "+strings.Join(changed(spec, was), ", ")))
}

// nodeSelector checks Pods with scheduling gates. Their node selector may only become
// narrower.
func (c *podUpdateCheck) nodeSelector(now, was map[string]string) {
	for key, value := range was {
		if other, ok := now[key]; !ok || other != value {
			c.invalid(specPath.Child("nodeSelector"), now, "only additions are allowed (no mutations or deletions)")
			return
		}
	}
}

func requiredTerms(spec *corev1.PodSpec) []corev1.NodeSelectorTerm {
	a := spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// nodeTerms checks Pods with scheduling gates. Each node selector term may only gain
// requirements.
func (c *podUpdateCheck) nodeTerms(now, was []corev1.NodeSelectorTerm) {
	at := specPath.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	if len(was) > 0 && len(now) != len(was) {
		c.invalid(at, len(now), "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
		return
	}
	for i := range was {
		old, term := &was[i], &now[i]
		begun := len(old.MatchExpressions)+len(old.MatchFields) > 0 || len(term.MatchExpressions)+len(term.MatchFields) == 0
		if !begun || !beginsWith(term.MatchExpressions, old.MatchExpressions) || !beginsWith(term.MatchFields, old.MatchFields) {
			c.invalid(at.Index(i), "", "only additions are allowed (no mutations or deletions)")
		}
	}
}

func beginsWith(list, start []corev1.NodeSelectorRequirement) bool {
	return len(list) >= len(start) && equality.Semantic.DeepEqual(list[:len(start)], start)
}

// changed names the fields of a spec that differ.
func changed(spec, was *corev1.PodSpec) []string {
	var names []string
	v, w := reflect.ValueOf(spec).Elem(), reflect.ValueOf(was).Elem()
	for i := range v.NumField() {
		if !equality.Semantic.DeepEqual(v.Field(i).Interface(), w.Field(i).Interface()) {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}
