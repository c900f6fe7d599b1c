// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// critical returns the admission webhooks of a backend whose failure rejects requests.
func critical(targets []*Target) (all []*Target) {
	for _, t := range targets {
		if t.Fails && (t.Kind == Mutating || t.Kind == Validating) {
			all = append(all, t)
		}
	}
	return all
}

// disruptions reports webhooks whose Pods can all be evicted at once, for example when nodes are drained.
func disruptions(s *Snapshot) []Finding {
	var found []Finding
	order, of := s.backends()
	for _, b := range order {
		targets := critical(of[b])
		pods := s.running(b.Service)
		budgets, known := s.Budgets[b.Service.Namespace]
		if len(targets) == 0 || !known || len(pods) < 2 || slices.ContainsFunc(pods, staysOnNode) || !s.IsPlaced(b) {
			continue // rule AK210 is about a single replica
		}
		name, most := strongest(budgets, pods)
		switch {
		case name == "" && haveBudgets(budgets, pods): // each workload has its own
		case name == "":
			found = append(found, find("no-disruption-budget", b.String(), targets,
				fmt.Sprintf("no PodDisruptionBudget in namespace %s selects the %d Pods of the Service", b.Service.Namespace, len(pods))))
		case most >= len(pods):
			found = append(found, find("weak-disruption-budget", b.String(), targets,
				fmt.Sprintf("PodDisruptionBudget %s/%s allows all %d Pods to be evicted at once", b.Service.Namespace, name, len(pods))))
		}
	}
	return found
}

// strongest returns the name of the strictest budget that selects all of the Pods, and how many of them it allows to be
// unavailable. The name is empty if there is no such budget.
func strongest(budgets []policyv1.PodDisruptionBudget, pods []corev1.Pod) (name string, most int) {
	for _, budget := range budgets {
		if n := allowed(budget.Spec, len(pods)); selectsAll(budget.Spec.Selector, pods) && (name == "" || n < most) {
			name, most = budget.Name, n
		}
	}
	return name, most
}

// haveBudgets reports whether a budget selects each Pod.
func haveBudgets(budgets []policyv1.PodDisruptionBudget, pods []corev1.Pod) bool {
	return !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return !slices.ContainsFunc(budgets, func(b policyv1.PodDisruptionBudget) bool { return selectsAll(b.Spec.Selector, []corev1.Pod{p}) })
	})
}

// staysOnNode reports whether a drain does not evict a Pod: one of a DaemonSet, or a static one of the kubelet.
func staysOnNode(p corev1.Pod) bool {
	owner := metav1.GetControllerOf(&p)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

func selectsAll(selector *metav1.LabelSelector, pods []corev1.Pod) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !parsed.Matches(labels.Set(p.Labels)) })
}

// allowed returns how many of the Pods a budget allows to be unavailable. Percentages are rounded up, as the disruption
// controller does.
func allowed(budget policyv1.PodDisruptionBudgetSpec, pods int) int {
	scaled := func(v *intstr.IntOrString) int {
		n, err := intstr.GetScaledValueFromIntOrPercent(v, pods, true)
		if err != nil {
			return 0 // the API server validates the field
		}
		return n
	}
	switch {
	case budget.MaxUnavailable != nil:
		return min(scaled(budget.MaxUnavailable), pods)
	case budget.MinAvailable != nil:
		return max(pods-scaled(budget.MinAvailable), 0)
	}
	return pods // kubernetes pkg/controller/disruption/disruption.go, getExpectedPodCount: neither field asks for a healthy Pod
}

// ready reports webhooks with several Pods if only one of them is ready.
func ready(s *Snapshot) []Finding {
	var found []Finding
	order, of := s.backends()
	for _, b := range order {
		targets := critical(of[b])
		pods, ready := s.running(b.Service), s.Endpoints(b)
		if len(targets) == 0 || len(pods) < 2 || len(ready) != 1 || !s.IsPlaced(b) {
			continue
		}
		evidence := []string{fmt.Sprintf("1 of %d Pods of the Service is ready", len(pods))}
		for _, p := range pods {
			if p.Name != ready[0].Pod && len(evidence) < maxEvidence {
				evidence = append(evidence, fmt.Sprintf("Pod %s: %s", p.Name, stateOf(&p)))
			}
		}
		found = append(found, find("one-ready", b.String(), targets, evidence...).with(b.podCommands(s.Services[b.Service])...))
	}
	return found
}

// nodes reports webhooks whose Pods all run on one node.
func nodes(s *Snapshot) []Finding {
	var found []Finding
	order, of := s.backends()
	for _, b := range order {
		targets := critical(of[b])
		pods := s.running(b.Service)
		if len(targets) == 0 || len(pods) < 2 || !s.SeveralNodes || !s.IsPlaced(b) {
			continue
		}
		node := pods[0].Spec.NodeName
		if node != "" && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName != node }) {
			found = append(found, find("one-node", b.String(), targets, fmt.Sprintf("all %d Pods of the Service run on node %s", len(pods), node)))
		}
	}
	return found
}
