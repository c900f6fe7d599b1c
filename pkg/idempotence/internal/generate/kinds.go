// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A kind has the rules for one built-in type.
type kind struct {
	// make returns a minimal valid object without metadata.
	make func(*build) object
	// pod returns the object that holds the Pod's metadata and spec. Nil means that the kind has no Pod.
	pod func(obj object) object
	// rules apply to the object, podRules to the Pod in it.
	rules, podRules rules
	traits          []choice
}

var (
	always    = []string{"Always", "OnFailure", "Never"}
	untilDone = []string{"Never", "OnFailure"}
	forever   = rules{template: true, restart: []string{"Always"}, noDeadline: true}
	job       = rules{template: true, restart: untilDone}
)

var kinds = map[reflect.Type]*kind{
	reflect.TypeFor[corev1.Pod](): {
		make: func(*build) object { return object{"spec": object{}} },
		pod:  func(o object) object { return o }, podRules: rules{restart: always},
	},
	reflect.TypeFor[corev1.PodTemplate](): {
		make: func(*build) object { return object{"template": object{"metadata": object{}, "spec": object{}}} },
		pod:  template, podRules: rules{template: true, restart: always},
	},
	reflect.TypeFor[appsv1.Deployment]():  {make: selecting, pod: inSpec, podRules: forever, traits: deploymentTraits},
	reflect.TypeFor[appsv1.ReplicaSet]():  {make: selecting, pod: inSpec, podRules: forever, traits: replicas},
	reflect.TypeFor[appsv1.DaemonSet]():   {make: selecting, pod: inSpec, podRules: forever, traits: daemonTraits},
	reflect.TypeFor[appsv1.StatefulSet](): {make: selecting, pod: inSpec, rules: rules{short: true}, podRules: forever, traits: statefulTraits},
	reflect.TypeFor[corev1.ReplicationController](): {
		make: func(b *build) object {
			l := object{"app": pick(b, words...)}
			return object{"spec": object{"selector": l, "template": object{"metadata": object{"labels": copied(l)}, "spec": object{}}}}
		},
		pod: inSpec, podRules: forever, traits: replicas,
	},
	reflect.TypeFor[batchv1.Job](): {
		make: func(b *build) object { return object{"spec": finishing(b)} },
		pod:  inSpec, rules: rules{short: true}, podRules: job, traits: jobTraits,
	},
	reflect.TypeFor[batchv1.CronJob](): {
		make: func(b *build) object {
			return object{"spec": object{"schedule": pick(b, "*/5 * * * *", "@hourly", "0 0 1 1 0"), "jobTemplate": object{"spec": finishing(b)}}}
		},
		pod:   func(o object) object { return inSpec(child(child(o, "spec"), "jobTemplate")) },
		rules: rules{short: true}, podRules: job, traits: cronTraits,
	},
	reflect.TypeFor[corev1.ConfigMap]():      {make: nothing, traits: configTraits},
	reflect.TypeFor[corev1.Secret]():         {make: nothing, traits: secretTraits},
	reflect.TypeFor[corev1.ServiceAccount](): {make: nothing, traits: accountTraits},
	reflect.TypeFor[corev1.Namespace]():      {make: nothing, rules: rules{cluster: true, short: true}},
	reflect.TypeFor[corev1.Service](): {
		make: func(b *build) object {
			return object{"spec": object{"ports": []any{object{"port": pick(b, int64(80), 443)}}}}
		},
		rules: rules{short: true}, traits: serviceTraits,
	},
	reflect.TypeFor[corev1.PersistentVolumeClaim](): {make: func(b *build) object { return object{"spec": claimSpec(b)} }},
	reflect.TypeFor[networkingv1.Ingress](): {
		make: func(b *build) object { return object{"spec": object{"rules": []any{b.ingressRule()}}} }, traits: ingressTraits,
	},
}

func nothing(*build) object { return object{} }

// template returns the pod template in an object, or nil.
func template(holder object) object {
	if holder == nil {
		return nil
	}
	return child(holder, "template")
}

func inSpec(o object) object { return template(child(o, "spec")) }

func copied(m object) object {
	c := make(object, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// selecting returns a workload that selects the Pods of its template.
func selecting(b *build) object {
	l := object{pick(b, "app", "app.kubernetes.io/name"): pick(b, words...)}
	s := object{"matchLabels": copied(l)}
	if b.chance(0.2) {
		for key, value := range l { // l has one entry
			s = object{"matchExpressions": []any{object{"key": key, "operator": "In", "values": []any{value}}}}
		}
	}
	return object{"spec": object{"selector": s, "template": object{"metadata": object{"labels": l}, "spec": object{}}}}
}

func finishing(b *build) object {
	return object{"template": object{"spec": object{"restartPolicy": pick(b, untilDone...)}}}
}

// inside returns a trait that sets a member of spec to one of the values.
func inside(name string, values ...any) func(*scope) bool {
	return func(s *scope) bool { return put(child(s.spec, "spec"), name, tree.Clone(pick(s.build, values...))) }
}

var replicas = []choice{one(0.5, "replicas", inside("replicas", int64(0), int64(1), int64(3)))}

// rolling returns a trait that sets a rolling update as a workload's strategy.
func rolling(name string) func(*scope) bool {
	return func(s *scope) bool {
		return put(child(s.spec, "spec"), name, object{
			"type": "RollingUpdate", "rollingUpdate": object{"maxUnavailable": pick[any](s.build, "25%", int64(1), "100%")},
		})
	}
}

var deploymentTraits = append([]choice{
	{0.4, []trait{{"strategy Recreate", inside("strategy", object{"type": "Recreate"})}, {"strategy RollingUpdate", rolling("strategy")}}},
	one(0.3, "paused", inside("paused", true)),
	one(0.3, "limits in time", func(s *scope) bool {
		spec := child(s.spec, "spec")
		return spec["progressDeadlineSeconds"] == nil && put(spec, "minReadySeconds", int64(10)) && put(spec, "progressDeadlineSeconds", int64(600))
	}),
}, replicas...)

var daemonTraits = []choice{
	{0.4, []trait{{"strategy OnDelete", inside("updateStrategy", object{"type": "OnDelete"})}, {"strategy RollingUpdate", rolling("updateStrategy")}}},
}

var statefulTraits = append([]choice{
	one(0.6, "service name", inside("serviceName", "db")),
	{0.4, []trait{{"pods in order", inside("podManagementPolicy", "OrderedReady")}, {"pods in parallel", inside("podManagementPolicy", "Parallel")}}},
	one(0.4, "claim templates", func(s *scope) bool {
		claim := object{"metadata": object{"name": "claim"}, "spec": claimSpec(s.build)}
		return put(child(s.spec, "spec"), "volumeClaimTemplates", []any{claim})
	}),
}, replicas...)

var jobTraits = []choice{
	one(0.4, "parallelism", inside("parallelism", int64(0), int64(2))),
	one(0.4, "completions", inside("completions", int64(1), int64(3))),
	one(0.3, "indexed", func(s *scope) bool {
		spec := child(s.spec, "spec")
		return spec["completionMode"] == nil && put(spec, "completions", int64(3)) && put(spec, "completionMode", "Indexed")
	}),
	one(0.3, "backoff", inside("backoffLimit", int64(0), int64(4))),
	one(0.3, "job deadline", inside("activeDeadlineSeconds", int64(60))),
	one(0.3, "kept for a while", inside("ttlSecondsAfterFinished", int64(0), int64(100))),
	one(0.2, "suspended", inside("suspend", true, false)),
}

var cronTraits = []choice{
	{0.4, []trait{{"concurrency Allow", inside("concurrencyPolicy", "Allow")}, {"concurrency Forbid", inside("concurrencyPolicy", "Forbid")}, {"concurrency Replace", inside("concurrencyPolicy", "Replace")}}},
	one(0.2, "suspended", inside("suspend", true, false)),
	one(0.3, "history", inside("successfulJobsHistoryLimit", int64(0), int64(5))),
	one(0.2, "time zone", inside("timeZone", "Etc/UTC")),
	one(0.2, "starting deadline", inside("startingDeadlineSeconds", int64(100))),
}
