// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"maps"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func defaultDeployment(o *appsv1.Deployment) {
	spec := &o.Spec
	setDefault(&spec.Replicas, 1)
	setDefault(&spec.RevisionHistoryLimit, 10)
	setDefault(&spec.ProgressDeadlineSeconds, 600)
	fill(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setDefault(&spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setDefault(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setDefault(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	defaultTemplate(&spec.Template)
}

func defaultReplicaSet(o *appsv1.ReplicaSet) {
	setDefault(&o.Spec.Replicas, 1)
	defaultTemplate(&o.Spec.Template)
}

func defaultStatefulSet(o *appsv1.StatefulSet) {
	spec := &o.Spec
	setDefault(&spec.Replicas, 1)
	setDefault(&spec.RevisionHistoryLimit, 10)
	fill(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	update := &spec.UpdateStrategy
	if update.Type == "" {
		update.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setDefault(&update.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if update.Type == appsv1.RollingUpdateStatefulSetStrategyType && update.RollingUpdate != nil {
		setDefault(&update.RollingUpdate.Partition, 0)
	}
	setDefault(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	fill(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	fill(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
		defaultClaim(claim)
	}
	defaultTemplate(&spec.Template)
}

func defaultDaemonSet(o *appsv1.DaemonSet) {
	spec := &o.Spec
	setDefault(&spec.RevisionHistoryLimit, 10)
	fill(&spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setDefault(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setDefault(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setDefault(&spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	if _, ok := o.Annotations[appsv1.DeprecatedTemplateGeneration]; !ok {
		setEntry(&o.Annotations, appsv1.DeprecatedTemplateGeneration, "0")
	}
	defaultTemplate(&spec.Template)
}

// setEntry replaces the map with a copy that has the entry, because other objects may share the
// map.
func setEntry(m *map[string]string, key, value string) {
	c := make(map[string]string, len(*m)+1)
	maps.Copy(c, *m)
	c[key] = value
	*m = c
}

func defaultJob(o *batchv1.Job) {
	spec := &o.Spec
	if spec.Completions == nil && spec.Parallelism == nil {
		spec.Completions = new(int32(1))
	}
	setDefault(&spec.Parallelism, 1)
	if spec.BackoffLimitPerIndex != nil {
		setDefault(&spec.BackoffLimit, math.MaxInt32)
	}
	setDefault(&spec.BackoffLimit, 6)
	if labels := spec.Template.Labels; labels != nil && len(o.Labels) == 0 {
		o.Labels = maps.Clone(labels)
	}
	setDefault(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	setDefault(&spec.Suspend, false)
	setDefault(&spec.ManualSelector, false)
	if spec.PodFailurePolicy != nil {
		setDefault(&spec.PodReplacementPolicy, batchv1.Failed)
	}
	setDefault(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	defaultJobSpec(spec)
}

// defaultJobSpec sets the defaults that apply both to a Job and to the job template of a CronJob.
func defaultJobSpec(spec *batchv1.JobSpec) {
	if policy := spec.PodFailurePolicy; policy != nil {
		for _, rule := range policy.Rules {
			for i := range rule.OnPodConditions {
				fill(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
			}
		}
	}
	defaultTemplate(&spec.Template)
}

func defaultCronJob(o *batchv1.CronJob) {
	fill(&o.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setDefault(&o.Spec.Suspend, false)
	setDefault(&o.Spec.SuccessfulJobsHistoryLimit, 3)
	setDefault(&o.Spec.FailedJobsHistoryLimit, 1)
	defaultJobSpec(&o.Spec.JobTemplate.Spec)
}

func defaultReplicationController(o *corev1.ReplicationController) {
	setDefault(&o.Spec.Replicas, 1)
	t := o.Spec.Template
	if t == nil {
		return
	}
	if t.Labels != nil && len(o.Spec.Selector) == 0 {
		o.Spec.Selector = maps.Clone(t.Labels)
	}
	if t.Labels != nil && len(o.Labels) == 0 {
		o.Labels = maps.Clone(t.Labels)
	}
	defaultTemplate(t)
}

func defaultSecret(o *corev1.Secret) {
	fill(&o.Type, corev1.SecretTypeOpaque)
	if len(o.StringData) > 0 {
		data := make(map[string][]byte, len(o.Data)+len(o.StringData))
		maps.Copy(data, o.Data)
		for key, value := range o.StringData {
			data[key] = []byte(value)
		}
		o.Data = data
	}
	o.StringData = nil
}

func defaultNamespace(o *corev1.Namespace) {
	fill(&o.Status.Phase, corev1.NamespaceActive)
	if o.Name != "" && o.Labels[corev1.LabelMetadataName] != o.Name {
		setEntry(&o.Labels, corev1.LabelMetadataName, o.Name)
	}
}

func defaultService(o *corev1.Service) {
	spec := &o.Spec
	fill(&spec.Type, corev1.ServiceTypeClusterIP)
	fill(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	switch affinity := spec.SessionAffinityConfig; spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if affinity == nil || affinity.ClientIP == nil || affinity.ClientIP.TimeoutSeconds == nil {
			seconds := corev1.DefaultClientIPServiceAffinitySeconds
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
		}
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		fill(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	balanced := spec.Type == corev1.ServiceTypeLoadBalancer
	if balanced || spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) > 0 {
		fill(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if balanced || spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeClusterIP {
		setDefault(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if balanced {
		setDefault(&spec.AllocateLoadBalancerNodePorts, true)
		for i := range o.Status.LoadBalancer.Ingress {
			if ingress := &o.Status.LoadBalancer.Ingress[i]; ingress.IP != "" {
				setDefault(&ingress.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}
