// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkDisruptionBudget(c *checker, o *policyv1.PodDisruptionBudget) {
	spec := &o.Spec
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		c.invalid(specPath, "", "minAvailable and maxUnavailable cannot be both set")
	}
	checkShare(c, specPath, "minAvailable", spec.MinAvailable, true)
	checkShare(c, specPath, "maxUnavailable", spec.MaxUnavailable, true)
	if spec.Selector != nil {
		c.selector(specPath.Child("selector"), spec.Selector)
	}
	enumIf(c, specPath, "unhealthyPodEvictionPolicy", spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget, policyv1.AlwaysAllow)
}

// checkAutoscaler checks an autoscaler. A new one must not have minReplicas 0, which needs a feature gate.
func checkAutoscaler(c *checker, o *autoscalingv2.HorizontalPodAutoscaler) {
	spec := &o.Spec
	least := int32(1)
	if spec.MinReplicas != nil {
		if least = *spec.MinReplicas; least < 0 || least == 0 && !c.isUpdate {
			c.invalid(specPath.Child("minReplicas"), least, "must be greater than or equal to 1")
		}
	}
	switch at := specPath.Child("maxReplicas"); {
	case spec.MaxReplicas == 0:
		c.required(at, "must be set and greater than 0")
	case spec.MaxReplicas < 0:
		c.invalid(at, spec.MaxReplicas, "must be greater than or equal to 1")
	case spec.MaxReplicas < least:
		c.invalid(at, spec.MaxReplicas, "must be greater than or equal to `minReplicas`")
	}
	checkReference(c, scaleTargetPath, &spec.ScaleTargetRef)
	if !c.isUpdate {
		checkScaleTargetGroup(c, &spec.ScaleTargetRef)
	}
	for i := range spec.Metrics {
		checkMetric(c, specPath.Child("metrics").Index(i), &spec.Metrics[i])
	}
	if behavior := spec.Behavior; behavior != nil {
		checkScalingRules(c, specPath.Child("behavior", "scaleUp"), behavior.ScaleUp)
		checkScalingRules(c, specPath.Child("behavior", "scaleDown"), behavior.ScaleDown)
	}
}

var scaleTargetPath = specPath.Child("scaleTargetRef")

// checkScaleTargetGroup requires the API group of the target. Older objects may lack it.
func checkScaleTargetGroup(c *checker, ref *autoscalingv2.CrossVersionObjectReference) {
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err == nil && gv.Group == "" {
		c.invalid(scaleTargetPath.Child("apiVersion"), ref.APIVersion, "apiVersion must specify API group")
	}
}

func checkReferencePart(c *checker, at *field.Path, s string) {
	if s == "" {
		c.required(at, "")
		return
	}
	c.invalid(at, s, content.IsPathSegmentName(s)...)
}

func checkReference(c *checker, at *field.Path, ref *autoscalingv2.CrossVersionObjectReference) {
	checkReferencePart(c, at.Child("kind"), ref.Kind)
	checkReferencePart(c, at.Child("name"), ref.Name)
	if _, err := schema.ParseGroupVersion(ref.APIVersion); err != nil && !c.isUpdate {
		c.invalid(at.Child("apiVersion"), ref.APIVersion, err.Error())
	}
}

// checkMetric checks that a metric has exactly the source that its type names.
func checkMetric(c *checker, at *field.Path, m *autoscalingv2.MetricSpec) {
	sources := map[autoscalingv2.MetricSourceType]struct {
		name string
		set  bool
	}{
		autoscalingv2.ObjectMetricSourceType:            {"object", m.Object != nil},
		autoscalingv2.PodsMetricSourceType:              {"pods", m.Pods != nil},
		autoscalingv2.ResourceMetricSourceType:          {"resource", m.Resource != nil},
		autoscalingv2.ExternalMetricSourceType:          {"external", m.External != nil},
		autoscalingv2.ContainerResourceMetricSourceType: {"containerResource", m.ContainerResource != nil},
	}
	own, known := sources[m.Type]
	switch {
	case m.Type == "":
		c.required(at.Child("type"), "must specify a metric source type")
		return
	case !known:
		c.add(field.NotSupported(at.Child("type"), m.Type, []autoscalingv2.MetricSourceType{}))
		return
	case !own.set:
		c.required(at.Child(own.name), "must populate information for the given metric source")
		return
	}
	for kind, source := range sources {
		if source.set && kind != m.Type {
			c.forbidden(at.Child(source.name), "must populate the given metric source only")
		}
	}
	checkMetricSource(c, at.Child(own.name), m)
}

func checkMetricSource(c *checker, at *field.Path, m *autoscalingv2.MetricSpec) {
	switch m.Type {
	case autoscalingv2.ObjectMetricSourceType:
		t := &m.Object.Target
		checkReference(c, at.Child("describedObject"), &m.Object.DescribedObject)
		checkReferencePart(c, at.Child("metric", "name"), m.Object.Metric.Name)
		checkMetricTarget(c, at, t, wrong(t.Value == nil && t.AverageValue == nil, "averageValue", false, ""))
	case autoscalingv2.PodsMetricSourceType:
		checkReferencePart(c, at.Child("metric", "name"), m.Pods.Metric.Name)
		checkMetricTarget(c, at, &m.Pods.Target, wrong(m.Pods.Target.AverageValue == nil, "averageValue", false, ""))
	case autoscalingv2.ExternalMetricSourceType:
		t := &m.External.Target
		checkReferencePart(c, at.Child("metric", "name"), m.External.Metric.Name)
		checkMetricTarget(c, at, t, wrong(t.Value == nil && t.AverageValue == nil, "averageValue", t.Value != nil && t.AverageValue != nil, "value"))
	case autoscalingv2.ResourceMetricSourceType:
		t := &m.Resource.Target
		if m.Resource.Name == "" {
			c.required(at.Child("name"), "must specify a resource name")
		}
		checkMetricTarget(c, at, t, wrong(t.AverageUtilization == nil && t.AverageValue == nil, "averageUtilization", t.AverageUtilization != nil && t.AverageValue != nil, "averageValue"))
	case autoscalingv2.ContainerResourceMetricSourceType:
		t := &m.ContainerResource.Target
		if m.ContainerResource.Name == "" {
			c.required(at.Child("name"), "must specify a resource name")
		}
		if name := m.ContainerResource.Container; name == "" {
			c.required(at.Child("container"), "must specify a container")
		} else {
			c.invalid(at.Child("container"), name, badLabel(name)...)
		}
		checkMetricTarget(c, at, t, wrong(t.AverageUtilization == nil && t.AverageValue == nil, "averageUtilization", t.AverageUtilization != nil && t.AverageValue != nil, "averageValue"))
	}
}

// wrong returns missing if lacks is set, surplus if both is set, and "" otherwise. The result names the value that a
// metric target lacks, or has in addition to the allowed one.
func wrong(lacks bool, missing string, both bool, surplus string) string {
	switch {
	case lacks:
		return missing
	case both:
		return surplus
	}
	return ""
}

// checkMetricTarget checks the target of a metric. If wrong is not empty, it names a value of the target that does not
// fit the metric's source.
func checkMetricTarget(c *checker, at *field.Path, t *autoscalingv2.MetricTarget, wrong string) {
	at = at.Child("target")
	switch t.Type {
	case "":
		c.required(at.Child("type"), "must specify a metric target type")
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	default:
		c.invalid(at.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue")
	}
	positive := func(child string, q *resource.Quantity) {
		if q != nil && q.Sign() != 1 {
			c.invalid(at.Child(child), q.String(), "must be positive")
		}
	}
	positive("value", t.Value)
	positive("averageValue", t.AverageValue)
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		c.invalid(at.Child("averageUtilization"), *t.AverageUtilization, "must be greater than 0")
	}
	if wrong != "" {
		c.invalid(at.Child(wrong), "", "must set one target that the source may have")
	}
}

func checkScalingRules(c *checker, at *field.Path, rules *autoscalingv2.HPAScalingRules) {
	if rules == nil {
		return
	}
	const mostSeconds, mostPeriod = 3600, 1800
	if s := rules.StabilizationWindowSeconds; s != nil && (*s < 0 || *s > mostSeconds) {
		c.invalid(at.Child("stabilizationWindowSeconds"), *s, "must be between 0 and 3600")
	}
	enumIf(c, at, "selectPolicy", rules.SelectPolicy, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect)
	for i, p := range rules.Policies {
		at := at.Child("policies").Index(i)
		if p.Type != autoscalingv2.PodsScalingPolicy && p.Type != autoscalingv2.PercentScalingPolicy {
			c.add(field.NotSupported(at.Child("type"), p.Type, []autoscalingv2.HPAScalingPolicyType{}))
		}
		if p.Value <= 0 {
			c.invalid(at.Child("value"), p.Value, "must be greater than zero")
		}
		if p.PeriodSeconds <= 0 || p.PeriodSeconds > mostPeriod {
			c.invalid(at.Child("periodSeconds"), p.PeriodSeconds, "must be between 1 and 1800")
		}
	}
	if t := rules.Tolerance; t != nil && t.Sign() < 0 {
		c.invalid(at.Child("tolerance"), t.String(), "must be greater than or equal to 0")
	}
}
