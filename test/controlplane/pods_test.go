// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// hooks is the namespace of the program, and the name of its objects.
const hooks = "hooks"

// deployed are the objects of a program that serves hooks as a Deployment. PROGRAM is its path. The tolerations let the
// Pods of a node that is gone be replaced after a few seconds.
const deployed = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: hooks, namespace: hooks}
---
apiVersion: v1
kind: Service
metadata: {name: hooks, namespace: hooks}
spec: {selector: {app: hooks}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: hooks, namespace: hooks}
spec: {minAvailable: 1, selector: {matchLabels: {app: hooks}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hooks, namespace: hooks}
spec:
  replicas: 2
  selector: {matchLabels: {app: hooks}}
  template:
    metadata: {labels: {app: hooks}}
    spec:
      serviceAccountName: hooks
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
      affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: hooks}}}}]}}
      containers:
      - name: hooks
        image: PROGRAM
        args: [--self-managed, --enable=AlwaysPullImages, --namespace=hooks, --service=hooks, --deployment=hooks, --ca-secret=hooks-ca, --addr=$(LISTEN), --ops-addr=]
        readinessProbe: {httpGet: {scheme: HTTPS, path: /readyz, port: 9443}}
`

var _ = Describe("hooks that run as Pods", Ordered, func() {
	var program, admitkit string
	var first, second *node

	BeforeAll(func(ctx context.Context) {
		first = startNode(ctx, "node-a")
		second = startNode(ctx, "node-b")
		program, admitkit = buildProgram(ctx, "examples/gallery"), buildProgram(ctx, "cmd/admitkit")
		_, err := cluster.Kubectl(ctx, "", "create", "namespace", hooks)
		Expect(err).NotTo(HaveOccurred())
		rights, err := exec.CommandContext(ctx, program, "--print-rbac", "--self-managed", "--enable=AlwaysPullImages", "--namespace=hooks", "--service=hooks",
			"--service-account=hooks", "--deployment=hooks", "--ca-secret=hooks-ca").Output()
		Expect(err).NotTo(HaveOccurred())
		apply(ctx, hooks, string(rights))
		apply(ctx, hooks, strings.Replace(deployed, "PROGRAM", program, 1))
		DeferCleanup(func(ctx context.Context) {
			for _, kind := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
				_, err := cluster.Kubectl(ctx, "", "delete", kind, "--all")
				Expect(err).NotTo(HaveOccurred())
			}
			deleteNamespace(ctx, hooks)
		})
	})

	It("are called through their Service", func(ctx context.Context) {
		Eventually(ctx, available).WithTimeout(2 * time.Minute).Should(Equal(int32(2)))
		Eventually(ctx, pulled).WithTimeout(time.Minute).Should(Equal(corev1.PullAlways))
	})

	It("heal when all replicas are gone at once", func(ctx context.Context) {
		killAll(ctx)
		Eventually(ctx, available).WithTimeout(2 * time.Minute).Should(Equal(int32(2)))
		Eventually(ctx, pulled).WithTimeout(time.Minute).Should(Equal(corev1.PullAlways))
	})

	It("heal when a node is gone", func(ctx context.Context) {
		first.stop()
		Eventually(ctx, func(ctx context.Context) (nodes []string, err error) {
			pods, err := clients.CoreV1().Pods(hooks).List(ctx, metav1.ListOptions{})
			for _, p := range pods.Items {
				if p.DeletionTimestamp == nil && isReady(&p) {
					nodes = append(nodes, p.Spec.NodeName)
				}
			}
			return nodes, err
		}).WithTimeout(4 * time.Minute).Should(Equal([]string{"node-b", "node-b"}))
		Eventually(ctx, pulled).WithTimeout(time.Minute).Should(Equal(corev1.PullAlways))
	})

	It("do not heal if their own namespace is not excluded", func(ctx context.Context) {
		installed, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "gallery", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		naive := installed.DeepCopy()
		naive.ObjectMeta = metav1.ObjectMeta{Name: "naive"}
		for i := range naive.Webhooks {
			naive.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{}
		}
		_, err = clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, naive, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, pulledIn).WithArguments(hooks).WithTimeout(time.Minute).Should(Equal(corev1.PullAlways)) // the API server has the configuration
		killAll(ctx)
		var refused corev1.Event
		Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
			list, err := clients.CoreV1().Events(hooks).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
			return list.Items, err
		}).WithTimeout(2 * time.Minute).Should(ContainElement(HaveField("Message", ContainSubstring(`failed calling webhook "set.alwayspullimages.example.com"`)), &refused))
		AddReportEntry("event", refused.Message)
		Eventually(ctx, available).WithTimeout(time.Minute).Should(BeZero())
		By("as admitkit lint has predicted, and as admitkit doctor says")
		Expect(reports(ctx, admitkit, "lint", "--cluster")).To(ContainSubstring("AK201"))
		Expect(reports(ctx, admitkit, "doctor")).To(ContainSubstring("AK201"))
		By("going on when the configuration is gone")
		Expect(clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, "naive", metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, available).WithTimeout(4 * time.Minute).Should(Equal(int32(2)))
	})

	It("heal after a cold start of the whole cluster", func(ctx context.Context) {
		second.stop()
		second.wait()
		Expect(cluster.Restart(ctx)).To(Succeed())
		By("refusing Pods while no replica runs")
		Eventually(ctx, func(ctx context.Context) error {
			_, err := pulled(ctx)
			return err
		}).WithTimeout(time.Minute).Should(MatchError(ContainSubstring(`failed calling webhook "set.alwayspullimages.example.com"`)))
		startNode(ctx, "node-b")
		startNode(ctx, "node-c")
		Eventually(ctx, pulled).WithTimeout(4 * time.Minute).Should(Equal(corev1.PullAlways))
		Eventually(ctx, available).WithTimeout(4 * time.Minute).Should(Equal(int32(2)))
	})
})

// reports returns the output of a command of admitkit about the cluster. The command may find faults.
func reports(ctx context.Context, admitkit, command string, flags ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, admitkit, append([]string{command, "--kubeconfig=" + cluster.Kubeconfig()}, flags...)...)
	out, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	Expect(err).To(Or(BeNil(), BeAssignableToTypeOf(exited)), string(out))
	AddReportEntry("admitkit "+command, string(out))
	return string(out)
}

// available returns the number of available replicas of the program.
func available(ctx context.Context) (int32, error) {
	d, err := clients.AppsV1().Deployments(hooks).Get(ctx, hooks, metav1.GetOptions{})
	return d.Status.AvailableReplicas, err
}

// pulled returns the pull policy of a new Pod, which the hook sets. The Pod is not stored.
func pulled(ctx context.Context) (corev1.PullPolicy, error) { return pulledIn(ctx, "default") }

func pulledIn(ctx context.Context, namespace string) (corev1.PullPolicy, error) {
	pod, err := clients.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "canary"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1", ImagePullPolicy: corev1.PullNever}}}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", err
	}
	return pod.Spec.Containers[0].ImagePullPolicy, nil
}

// killAll deletes all Pods of the program without a grace period, as if their nodes had lost power.
func killAll(ctx context.Context) {
	GinkgoHelper()
	Expect(clients.CoreV1().Pods(hooks).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{})).To(Succeed())
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
