// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

func defaultAutoscaler(o *autoscalingv2.HorizontalPodAutoscaler) {
	spec := &o.Spec
	setDefault(&spec.MinReplicas, 1)
	if len(spec.Metrics) == 0 {
		spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
			},
		}}
	}
	if behavior := spec.Behavior; behavior != nil {
		const seconds = 15
		allAtOnce := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: seconds}
		fourMore := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: seconds}
		behavior.ScaleUp = scalingRules(behavior.ScaleUp, fourMore, allAtOnce)
		setDefault(&behavior.ScaleUp.StabilizationWindowSeconds, 0)
		behavior.ScaleDown = scalingRules(behavior.ScaleDown, allAtOnce)
	}
}

func scalingRules(rules *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	if rules == nil {
		rules = &autoscalingv2.HPAScalingRules{}
	}
	setDefault(&rules.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if rules.Policies == nil {
		rules.Policies = policies
	}
	return rules
}
