// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// mostWrites is the number of equal writes of one object from which they are a storm. Without one, the status of the
// Deployment of these specs is written most often, about 20 times.
const mostWrites = 60

// configurations are the configuration files of the hooks of the gallery that need one.
var configurations = map[string]string{
	"EventRateLimit":   "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits:\n- {type: Server, qps: 100, burst: 1000}\n",
	"PodPreset":        "- apiVersion: settings.k8s.io/v1alpha1\n  kind: PodPreset\n  metadata: {namespace: other, name: database}\n  spec:\n    selector: {matchLabels: {role: frontend}}\n    env: [{name: DB_PORT, value: \"6379\"}]\n",
	"SidecarInjection": "image: example.com/proxy:1\n",
}

// notHere lists the hooks of the gallery that do not run in these specs.
var notHere = map[string]string{"ImagePolicyWebhook": "it needs a service that knows the images"}

// startGallery runs the program of the gallery with all its hooks, which registers itself, and waits until the API
// server calls them.
func startGallery(ctx context.Context) {
	GinkgoHelper()
	dir, program := GinkgoT().TempDir(), buildProgram(ctx, "examples/gallery")
	args := []string{"--self-managed", "--kubeconfig=" + cluster.Kubeconfig(), "--ops-addr=", "--shutdown-delay=0"}
	for _, name := range namesOf(ctx, program) {
		if notHere[name] != "" {
			continue
		}
		args = append(args, "--enable="+name)
		if content, needed := configurations[name]; needed {
			file := filepath.Join(dir, name)
			Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
			args = append(args, "--config="+name+"="+file)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	address := listener.Addr().String()
	Expect(listener.Close()).To(Succeed())
	_, err = cluster.Kubectl(ctx, "", "create", "namespace", "gallery")
	Expect(err).NotTo(HaveOccurred())
	var log strings.Builder
	running := exec.Command(program, append(args, "--addr="+address, "--url=https://"+address)...)
	running.Stdout, running.Stderr = &log, &log
	Expect(running.Start()).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		AddReportEntry("log of the gallery", log.String(), ReportEntryVisibilityFailureOrVerbose)
		Expect(running.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(running.Wait()).To(Succeed())
		out, err := exec.CommandContext(ctx, program, append(args, "--url=https://"+address, "--uninstall")...).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
	})
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate of the program is not the subject
	Eventually(ctx, func() (int, error) {
		response, err := insecure.Get("https://" + address + "/readyz")
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}).WithTimeout(2 * time.Minute).Should(Equal(http.StatusOK))
	Eventually(ctx, func(ctx context.Context) error {
		_, err := clients.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "canary"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1", ImagePullPolicy: "Never"}}}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}).WithTimeout(time.Minute).Should(Succeed())
}

// buildProgram builds a program of this repository and returns its path.
func buildProgram(ctx context.Context, folder string) string {
	GinkgoHelper()
	program := filepath.Join(GinkgoT().TempDir(), filepath.Base(folder))
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "../../"+folder).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return program
}

// namesOf returns the names of all hooks of the gallery, from the program's help.
func namesOf(ctx context.Context, program string) []string {
	GinkgoHelper()
	out, _ := exec.CommandContext(ctx, program, "--help").CombinedOutput() // exits with 2
	_, list, found := strings.Cut(string(out), "repeat the flag for more: ")
	Expect(found).To(BeTrue(), string(out))
	list, _, _ = strings.Cut(list, "\n")
	return strings.Split(list, ", ")
}

// shop has an object for each of the usual controllers.
const shop = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "example.com/app:1"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: app, image: "example.com/db:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: import}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: app, image: "example.com/import:1"}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "example.com/report:1"}]}}}}
`

var _ = Describe("controllers", Ordered, func() {
	BeforeAll(func(ctx context.Context) { startNode(ctx, "node-2") })

	It("work as usual under all hooks of the gallery", func(ctx context.Context) {
		startGallery(ctx)
		namespace := newNamespace(ctx, "shop")
		Eventually(ctx, func(ctx context.Context) error {
			_, err := clients.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err
		}).WithTimeout(time.Minute).Should(Succeed())
		apply(ctx, namespace, shop)
		deployment := func(ctx context.Context) (appsv1.DeploymentStatus, error) {
			d, err := clients.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
			return d.Status, err
		}
		By("starting Pods")
		Eventually(ctx, deployment).WithTimeout(2 * time.Minute).Should(HaveField("AvailableReplicas", int32(2)))
		By("scaling, as a HorizontalPodAutoscaler does")
		_, err := clients.AppsV1().Deployments(namespace).UpdateScale(ctx, "web", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 4}}, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, deployment).WithTimeout(time.Minute).Should(HaveField("AvailableReplicas", int32(4)))
		By("rolling out a new image")
		apply(ctx, namespace, strings.Replace(shop, "app:1", "app:2", 1))
		Eventually(ctx, deployment).WithTimeout(2 * time.Minute).Should(And(HaveField("ObservedGeneration", BeNumerically(">=", 3)), HaveField("UpdatedReplicas", BeNumerically(">=", 2)), HaveField("UnavailableReplicas", int32(0))))
		By("finishing Jobs, one of them of a CronJob")
		Eventually(ctx, func(ctx context.Context) (done []string, err error) {
			jobs, err := clients.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
			for _, j := range jobs.Items {
				if j.Status.Succeeded == 1 {
					done = append(done, strings.TrimRight(j.Name, "0123456789"))
				}
			}
			return done, err
		}).WithTimeout(2 * time.Minute).Should(ContainElements("import", "report-"))
		By("collecting what a Deployment owned")
		Expect(clients.AppsV1().Deployments(namespace).Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) ([]corev1.Pod, error) {
			pods, err := clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
			return pods.Items, err
		}).WithTimeout(time.Minute).Should(BeEmpty())
		By("deleting the namespace with everything in it")
		deleteNamespace(ctx, namespace)
		all, most := busiest(writesIn(namespace))
		AddReportEntry("most frequent writes", strings.Join(all, "\n"))
		Expect(most).To(BeNumerically("<", mostWrites), strings.Join(all, "\n"))
	})

	It("create Pods without end if a hook changes a label that their ReplicaSet selects by", func(ctx context.Context) {
		stop, err := cluster.Serve(ctx, "relabel", webhook.Mutating(admissionregistrationv1.MutatingWebhook{
			Name: "relabel.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			if req.Object.Labels["app"] == "web" {
				req.Object.Labels["app"] = "shop-web"
			}
			return nil
		}))
		Expect(err).NotTo(HaveOccurred())
		namespace := newNamespace(ctx, "storm")
		apply(ctx, namespace, workloads[0].manifest)
		Eventually(ctx, func() int { _, most := busiest(writesIn(namespace)); return most }).WithTimeout(2 * time.Minute).Should(BeNumerically(">=", mostWrites))
		Expect(clients.AppsV1().Deployments(namespace).Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
		Expect(stop()).To(Succeed())
	})

	It("cannot delete a namespace if a hook denies updates of objects that are being deleted", func(ctx context.Context) {
		stop, err := cluster.Serve(ctx, "frozen", webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: "frozen.example.com", Rules: webhook.Rules(webhook.OnUpdate("", "v1", "persistentvolumeclaims")),
		}, func(context.Context, *webhook.Request[corev1.PersistentVolumeClaim]) error {
			return webhook.Deny("claims never change")
		}))
		Expect(err).NotTo(HaveOccurred())
		namespace := newNamespace(ctx, "stuck")
		apply(ctx, namespace, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, finalizers: [kubernetes.io/pvc-protection]}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
		Expect(clients.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) ([]corev1.NamespaceCondition, error) {
			ns, err := clients.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			return ns.Status.Conditions, err
		}).WithTimeout(2 * time.Minute).Should(ContainElement(And(HaveField("Type", corev1.NamespaceFinalizersRemaining), HaveField("Status", corev1.ConditionTrue),
			HaveField("Message", ContainSubstring("kubernetes.io/pvc-protection")))))
		Expect(stop()).To(Succeed())
		By("going on when the hook is gone")
		deleteNamespace(ctx, namespace)
	})
})

// deleteNamespace deletes a namespace and waits until it is gone.
func deleteNamespace(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(clients.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})).To(Or(Succeed(), MatchError(apierrors.IsConflict, "IsConflict")))
	Eventually(ctx, func(ctx context.Context) error {
		_, err := clients.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return err
	}).WithTimeout(3 * time.Minute).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
}
