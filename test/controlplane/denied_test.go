// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// sentence is what the hook answers for a Pod whose container has no memory limit.
const sentence = `admission webhook "limits.example.com" denied the request: container "app" has no memory limit: set resources.limits.memory`

// needsLimits denies Pods whose containers have no memory limit.
func needsLimits() *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "limits.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for _, c := range req.Object.Spec.Containers {
			if c.Resources.Limits.Memory().IsZero() {
				return webhook.Denyf("container %q has no memory limit: set resources.limits.memory", c.Name)
			}
		}
		return nil
	})
}

// template is the Pod template of the workloads. %s is for further fields.
const template = `
      metadata: {labels: {app: web}}
      spec:%s
        containers: [{name: app, image: example.com/app:1}]`

// A workload is an object whose controller creates Pods, or creates an object that does so.
type workload struct {
	kind     string
	manifest string
	// events has the kind of the object to which the event with the denial belongs.
	events string
}

var workloads = []workload{
	{"Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:" + fmt.Sprintf(template, ""), "ReplicaSet"},
	{"StatefulSet", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\nspec:\n  serviceName: web\n  selector: {matchLabels: {app: web}}\n  template:" + fmt.Sprintf(template, ""), "StatefulSet"},
	{"DaemonSet", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:" + fmt.Sprintf(template, ""), "DaemonSet"},
	{"Job", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web}\nspec:\n  template:" + fmt.Sprintf(template, "\n        restartPolicy: Never"), "Job"},
	{"CronJob", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web}\nspec:\n  schedule: '* * * * *'\n  jobTemplate:\n   spec:\n    template:" + fmt.Sprintf(template, "\n        restartPolicy: Never"), "Job"},
}

var _ = Describe("a hook that denies the Pods of a workload", Ordered, func() {
	BeforeAll(func(ctx context.Context) {
		_, err := clients.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) error {
			return clients.CoreV1().Nodes().Delete(ctx, "node-1", metav1.DeleteOptions{})
		})
		stop, err := cluster.Serve(ctx, "limits", needsLimits())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(stop)
	})

	for _, w := range workloads {
		It("is quoted in an event of the "+w.kind, func(ctx context.Context) {
			namespace := newNamespace(ctx, "denied")
			apply(ctx, namespace, w.manifest)
			var denial corev1.Event
			Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
				list, err := clients.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
				return list.Items, err
			}).WithTimeout(90 * time.Second).Should(ContainElement(HaveField("Message", ContainSubstring(sentence)), &denial))
			Expect(denial.InvolvedObject.Kind).To(Equal(w.events))
			Expect(denial.Type).To(Equal(corev1.EventTypeWarning))
			AddReportEntry("event", fmt.Sprintf("%s %s: %s", denial.InvolvedObject.Kind, denial.Reason, denial.Message))
		})
	}

	It("is quoted in a condition of the Deployment, and shown by kubectl describe", func(ctx context.Context) {
		namespace := newNamespace(ctx, "denied")
		apply(ctx, namespace, workloads[0].manifest)
		Eventually(ctx, func(ctx context.Context) ([]appsv1.DeploymentCondition, error) {
			d, err := clients.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
			return d.Status.Conditions, err
		}).WithTimeout(time.Minute).Should(ContainElement(And(
			HaveField("Type", appsv1.DeploymentReplicaFailure), HaveField("Reason", "FailedCreate"), HaveField("Message", ContainSubstring(sentence)))))
		out, err := cluster.Kubectl(ctx, "", "describe", "replicaset", "--namespace="+namespace)
		Expect(err).NotTo(HaveOccurred())
		shown(GinkgoTB(), out)
	})

	It("creates the Pods once the author follows the sentence", func(ctx context.Context) {
		namespace := newNamespace(ctx, "mended")
		apply(ctx, namespace, strings.Replace(workloads[0].manifest, "image: example.com/app:1", "image: example.com/app:1, resources: {limits: {memory: 64Mi}}", 1))
		Eventually(ctx, func(ctx context.Context) ([]corev1.Pod, error) {
			list, err := clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			return list.Items, err
		}).WithTimeout(time.Minute).Should(HaveLen(1))
	})
})

// page shows the output of kubectl describe.
const page = "../../docs/decisions-and-failures.md"

// varying are the parts of the output that differ between runs: ages and numbers of events.
var varying = regexp.MustCompile(`[0-9]+s( \(x[0-9]+ over [0-9]+s\))? +|Age +|--+ +`)

// shown fails the test if the page does not show the conditions and events in the output of kubectl describe.
func shown(t testing.TB, output string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "$ kubectl describe replicaset\n...\n")
	block, _, found := strings.Cut(rest, "```")
	_, end, _ := strings.Cut(output, "\nConditions:\n")
	if got := "Conditions:\n" + end; !found || varying.ReplaceAllString(block, "… ") != varying.ReplaceAllString(got, "… ") {
		t.Errorf("%s does not show the output:\n%s", page, got)
	}
}
