// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func triggerBugs() []Case {
	return []Case{{
		Name:    "U01b1-gpu-profile-toleration",
		Kind:    "Pod",
		Summary: "adds the toleration of a GPU slice to training Pods with a CUDA image and a known profile",
		Why: "CREATE a Pod; a later webhook changes it and the API server calls again: the Pod has the toleration " +
			"twice, and once more after each further call.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			if spec := &req.Object.Spec; wantsGPU(req.Object) {
				spec.Tolerations = append(spec.Tolerations, gpuToleration(req.Object))
			}
			return nil
		}),
		Sample: gpuPod,
		Proof:  twice,
	}, {
		Name:    "U01b2-java-agent-flag",
		Kind:    "Pod",
		Summary: "puts the flag of the APM agent in front of -jar in Java containers of Pods that want observability",
		Why: "CREATE a Pod, then a second call: the flag is put in front of -jar again, so the JVM loads the agent " +
			"twice and refuses to start.",
		Webhook: podsOnCreate,
		build:   raw(javaAgentAgain),
		Sample:  javaPod,
		Proof:   twice,
	}, {
		Name:    "U01b3-charge-path-of-gold-namespaces",
		Kind:    "Deployment",
		Summary: "extends the charge path by the namespace, in namespaces with the billing tier gold or platinum",
		Why: "CREATE a Deployment, then UPDATE it with what is stored: the path retail/online/shop becomes " +
			"retail/online/shop/shop, and longer with each write.",
		Webhook: forNamespaces(deploymentsOnWrite, "billing.example.com/tier", "gold", "platinum"),
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			if path, ok := req.Object.Annotations[chargePath]; ok {
				req.Object.Annotations[chargePath] = path + "/" + req.Namespace
			}
			return nil
		}),
		Sample:          chargedDeployment,
		NamespaceLabels: map[string]string{"billing.example.com/tier": "gold"},
		Proof:           twice,
	}, {
		Name:    "U01b4-batch-window-env",
		Kind:    "CronJob",
		Summary: "tells the containers of a CronJob its batch window, and notes in an annotation that it did",
		Why: "CREATE a CronJob, then UPDATE it with one more container: because of the note the new container does " +
			"not get BATCH_WINDOW, which it does get if the CronJob is created with it.",
		Webhook: cronJobsOnWrite,
		Sample:  windowCronJob,
		Proof:   againAfter(addContainer(lateContainer, "spec", "jobTemplate", "spec", "template", "spec", "containers")),
	}, {
		Name:    "U01b5-backup-pre-stop",
		Kind:    "StatefulSet",
		Summary: "flushes PostgreSQL before a container stops, for databases with a daily backup and volumes of their own",
		Why: "CREATE a StatefulSet, then UPDATE it with what is stored: the command that flushes is put in front of " +
			"itself once more.",
		Webhook: statefulSetsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.StatefulSet]) error {
			if !wantsBackup(req.Object) {
				return nil
			}
			for i := range req.Object.Spec.Template.Spec.Containers {
				c := &req.Object.Spec.Template.Spec.Containers[i]
				if repository(c.Image) == "postgres" {
					c.Lifecycle = &corev1.Lifecycle{PreStop: flushBefore(c.Lifecycle)}
				}
			}
			return nil
		}),
		Sample: databaseStatefulSet,
		Proof:  twice,
	}}
}

const (
	gpuProfile = "accel.platform.example.com/profile"
	chargePath = "billing.example.com/charge-path"
	backup     = "backup.example.com/policy"
	agentFlag  = "-javaagent:/opt/apm/agent.jar"
)

// gpuSlices has the value of the taint for each known profile.
var gpuSlices = map[string]string{"a100-mig-3g.20gb": "mig-3g", "a100-mig-1g.5gb": "mig-1g", "h100-whole": "whole"}

func wantsGPU(pod *corev1.Pod) bool {
	return gpuSlices[pod.Annotations[gpuProfile]] != "" && pod.Labels["workload-class"] == "training" &&
		slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return strings.Contains(c.Image, "cuda") })
}

func gpuToleration(pod *corev1.Pod) corev1.Toleration {
	return corev1.Toleration{Key: "accel.platform.example.com/slice", Operator: corev1.TolerationOpEqual,
		Value: gpuSlices[pod.Annotations[gpuProfile]], Effect: corev1.TaintEffectNoSchedule}
}

// javaAgentAgain inserts the flag without checking whether it is there.
func javaAgentAgain(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
	return javaAgent(pod, func([]any) bool { return true })
}

func javaAgent(pod object, wants func(args []any) bool) ([]operation, error) {
	if text(pod, "metadata", "labels", "observability") != "apm" {
		return nil, nil
	}
	var ops []operation
	for i, c := range list(pod, "spec", "containers") {
		args := list(c, "args")
		jar := slices.Index(args, any("-jar"))
		if repo := repository(text(c, "image")); jar < 0 || !strings.Contains(repo, "jre") || !wants(args) {
			continue
		}
		ops = append(ops, add(pointer("spec", "containers", i, "args", jar), agentFlag))
	}
	return ops, nil
}

func wantsBackup(set *appsv1.StatefulSet) bool {
	return set.Labels["app.kubernetes.io/component"] == "database" && set.Labels[backup] == "daily" &&
		len(set.Spec.VolumeClaimTemplates) > 0
}

// flushBefore returns a preStop handler that flushes, and then runs the command of the container's own handler.
func flushBefore(have *corev1.Lifecycle) *corev1.LifecycleHandler {
	script := "pg_ctl -m fast stop"
	if have != nil && have.PreStop != nil && have.PreStop.Exec != nil {
		script += " && " + strings.Join(have.PreStop.Exec.Command, " ")
	}
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}}
}

const (
	gpuPod = podHead + `
metadata:
  name: resnet
  namespace: shop
  labels: {workload-class: training}
  annotations: {accel.platform.example.com/profile: a100-mig-3g.20gb}
spec:
  containers:
  - {name: train, image: "ghcr.io/vision/cuda-train:12.4", args: [--epochs=40]}
`
	javaPod = podHead + `
metadata:
  name: orders
  namespace: shop
  labels: {app: orders, observability: apm}
spec:
  containers:
  - {name: orders, image: "registry.example.com/base/temurin-jre:21", args: [-Xmx512m, -jar, /app/orders.jar]}
  - {name: cache, image: "redis:7.2"}
`
	chargedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: checkout
  namespace: shop
  annotations: {billing.example.com/charge-path: retail/online}
spec:
  selector: {matchLabels: {app: checkout}}
  template:
    metadata: {labels: {app: checkout}}
    spec: {containers: [{name: checkout, image: "registry.example.com/shop/checkout:3.1"}]}
`
	windowCronJob = `
apiVersion: batch/v1
kind: CronJob
metadata:
  name: reports
  namespace: shop
  annotations: {batch.example.com/window: "Mon-Fri 08:00-18:00"}
spec:
  schedule: "*/30 * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers: [{name: report, image: "registry.example.com/shop/report:1.9"}]
`
	databaseStatefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: ledger-db
  namespace: shop
  labels: {app.kubernetes.io/component: database, backup.example.com/policy: daily}
spec:
  serviceName: ledger-db
  selector: {matchLabels: {app: ledger-db}}
  template:
    metadata: {labels: {app: ledger-db}}
    spec:
      containers:
      - name: db
        image: docker.io/library/postgres:16.3
        volumeMounts: [{name: data, mountPath: /var/lib/postgresql/data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 20Gi}}
`
)
