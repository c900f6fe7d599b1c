// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (p *podCheck) checkScheduling() {
	spec := p.spec
	p.labels(p.at, "nodeSelector", spec.NodeSelector)
	if len(spec.Tolerations) > 0 {
		p.tolerations(p.at.Child("tolerations"), spec.Tolerations)
	}
	var gates seen[string]
	for i, gate := range spec.SchedulingGates {
		at := p.at.Child("schedulingGates").Index(i)
		p.invalid(at, gate.Name, badLabelKey(gate.Name)...)
		if !gates.add(gate.Name) {
			p.duplicate(at, gate.Name)
		}
	}
	for i := range spec.TopologySpreadConstraints {
		p.spread(p.at.Child("topologySpreadConstraints"), i)
	}
	if spec.Affinity != nil {
		p.affinity(p.at.Child("affinity"), spec.Affinity)
	}
}

// tolerations checks tolerations. Duplicates are allowed.
func (p *podCheck) tolerations(at *field.Path, list []corev1.Toleration) {
	for i := range list {
		t := &list[i]
		if t.Key != "" {
			if bad := badLabelKey(t.Key); bad != nil {
				p.invalid(at.Index(i).Child("key"), t.Key, bad...)
			}
		} else if t.Operator != corev1.TolerationOpExists {
			p.invalid(at.Index(i).Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			p.invalid(at.Index(i).Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
		}
		enum(p.checker, at.Index(i), "effect", t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			p.invalid(at.Index(i).Child("operator"), t.Value, badLabelValue(t.Value)...)
		case corev1.TolerationOpExists:
			if t.Value != "" {
				p.invalid(at.Index(i).Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'")
			}
		case "Lt", "Gt": // a feature of some clusters
		default:
			p.add(field.NotSupported(at.Index(i).Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
	}
}

func (p *podCheck) spread(list *field.Path, i int) {
	constraints := p.spec.TopologySpreadConstraints
	s := &constraints[i]
	at := list.Index(i)
	if s.MaxSkew <= 0 {
		p.invalid(at.Child("maxSkew"), s.MaxSkew, "must be greater than zero")
	}
	if s.TopologyKey == "" {
		p.required(at.Child("topologyKey"), "can not be empty")
	}
	enumIf(p.checker, at, "whenUnsatisfiable", &s.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
	if s.MinDomains != nil && (*s.MinDomains <= 0 || s.WhenUnsatisfiable != corev1.DoNotSchedule) {
		p.invalid(at.Child("minDomains"), *s.MinDomains, "must be greater than zero, and whenUnsatisfiable must be DoNotSchedule")
	}
	for _, other := range constraints[:i] {
		if s.TopologyKey == other.TopologyKey && s.WhenUnsatisfiable == other.WhenUnsatisfiable {
			p.duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), s.TopologyKey)
		}
	}
	p.selector(at.Child("labelSelector"), s.LabelSelector)
}

func (c *checker) selector(at *field.Path, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	if len(s.MatchExpressions) == 0 {
		c.labels(at, "matchLabels", s.MatchLabels)
		return
	}
	c.errs = append(c.errs, metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at)...)
}

func (p *podCheck) affinity(at *field.Path, a *corev1.Affinity) {
	if n := a.NodeAffinity; n != nil {
		at := at.Child("nodeAffinity")
		if required := n.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			p.nodeTerms(at.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"), required.NodeSelectorTerms)
		}
		for i, term := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			at := at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
			p.weight(at, term.Weight)
			p.nodeTerm(at.Child("preference"), &term.Preference)
		}
	}
	if a.PodAffinity != nil {
		p.podTerms(at.Child("podAffinity"), a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		p.podTerms(at.Child("podAntiAffinity"), a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (c *checker) weight(at *field.Path, weight int32) {
	if weight < 1 || weight > 100 {
		c.invalid(at.Child("weight"), weight, "must be in the range 1-100")
	}
}

func (p *podCheck) nodeTerms(at *field.Path, terms []corev1.NodeSelectorTerm) {
	if len(terms) == 0 {
		p.required(at, "must have at least one node selector term")
	}
	for i := range terms {
		p.nodeTerm(at.Index(i), &terms[i])
		if !p.isUpdate {
			p.nodeValues(at.Index(i), &terms[i])
		}
	}
}

func (p *podCheck) nodeValues(at *field.Path, term *corev1.NodeSelectorTerm) {
	for i, r := range term.MatchExpressions {
		for j, value := range r.Values {
			p.invalid(at.Child("matchExpressions").Index(i).Child("values").Index(j), value, badLabelValue(value)...)
		}
	}
}

// nodeTerm checks a node selector term. It does not check the syntax of values, because a preferred term may have any
// values.
func (p *podCheck) nodeTerm(at *field.Path, term *corev1.NodeSelectorTerm) {
	for i, r := range term.MatchExpressions {
		at := at.Child("matchExpressions").Index(i)
		p.invalid(at.Child("key"), r.Key, badLabelKey(r.Key)...)
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) == 0 {
				p.required(at.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'")
			}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				p.forbidden(at.Child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			if len(r.Values) != 1 {
				p.required(at.Child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'")
			}
		default:
			p.invalid(at.Child("operator"), r.Operator, "not a valid selector operator")
		}
	}
}

func (p *podCheck) podTerms(at *field.Path, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i := range required {
		p.podTerm(at.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i), &required[i])
	}
	for i := range preferred {
		at := at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		p.weight(at, preferred[i].Weight)
		p.podTerm(at.Child("podAffinityTerm"), &preferred[i].PodAffinityTerm)
	}
}

func (p *podCheck) podTerm(at *field.Path, term *corev1.PodAffinityTerm) {
	if term.TopologyKey == "" {
		p.required(at.Child("topologyKey"), "can not be empty")
	} else {
		p.invalid(at.Child("topologyKey"), term.TopologyKey, badLabelKey(term.TopologyKey)...)
	}
	p.selector(at.Child("labelSelector"), term.LabelSelector)
	p.selector(at.Child("namespaceSelector"), term.NamespaceSelector)
	for _, name := range term.Namespaces {
		p.invalid(at.Child("namespace"), name, badLabel(name)...)
	}
}
