// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	project   = "store" // the name of the project, its namespace and its objects
	teamLabel = "example.com/team"
)

// manifestsOf returns the manifests of a generated project. They run the program as a process on this machine, where two
// replicas cannot both use the ports of the project.
func manifestsOf(ctx context.Context, dir, program string) string {
	GinkgoHelper()
	manifests, err := cluster.Kubectl(ctx, "", "kustomize", filepath.Join(dir, "config"))
	Expect(err).NotTo(HaveOccurred())
	for from, to := range map[string]string{
		"image: registry.example.com/" + project + ":v0.1.0": "image: " + program,
		"--addr=:9443":     "--addr=$(LISTEN)",
		"--ops-addr=:8080": "--ops-addr=",
	} {
		Expect(manifests).To(ContainSubstring(from))
		manifests = strings.ReplaceAll(manifests, from, to)
	}
	return manifests
}

var _ = Describe("a generated project that runs as Pods", Ordered, func() {
	BeforeAll(func(ctx context.Context) {
		for _, name := range []string{"node-d", "node-e"} {
			startNode(ctx, name)
		}
		checkout, err := filepath.Abs("../..")
		Expect(err).NotTo(HaveOccurred())
		parent := GinkgoT().TempDir()
		dir, program := filepath.Join(parent, project), filepath.Join(parent, "program")
		run := func(in, name string, args ...string) {
			GinkgoHelper()
			cmd := exec.CommandContext(ctx, name, args...)
			cmd.Dir, cmd.Env = in, append(os.Environ(), "GOFLAGS=-mod=mod")
			out, err := cmd.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
		}
		run(parent, buildProgram(ctx, "cmd/admitkit"), "init", project, "--certs=self-managed", "--mutate=pods", "--admitkit="+checkout)
		run(dir, "go", "build", "-o", program, ".")
		apply(ctx, project, manifestsOf(ctx, dir, program))
		DeferCleanup(func(ctx context.Context) {
			_, err := cluster.Kubectl(ctx, "", "delete", "mutatingwebhookconfiguration", project)
			Expect(err).NotTo(HaveOccurred())
			deleteNamespace(ctx, project)
		})
	})

	It("changes new Pods", func(ctx context.Context) {
		Eventually(ctx, team).WithTimeout(2 * time.Minute).ShouldNot(BeEmpty())
		Eventually(ctx, projectReplicas).WithTimeout(time.Minute).Should(Equal(int32(2)))
		Eventually(ctx, func(ctx context.Context) ([]admissionregistrationv1.MutatingWebhook, error) {
			installed, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, project, metav1.GetOptions{})
			return installed.Webhooks, err
		}).WithTimeout(time.Minute).Should(ContainElement(And(
			HaveField("Name", "mutate-pods.store.example.com"), HaveField("FailurePolicy", HaveValue(BeEquivalentTo("Fail"))), HaveField("ClientConfig.CABundle", Not(BeEmpty())),
		)))
	})

	It("loses no call during a rollout", func(ctx context.Context) {
		before := podsOfProject(ctx)
		calling, stop := context.WithCancel(ctx)
		var failures []string
		calls := 0
		var load sync.WaitGroup
		DeferCleanup(func() {
			stop()
			load.Wait()
		})
		load.Go(func() {
			for calling.Err() == nil {
				value, err := team(calling)
				if calling.Err() != nil {
					return
				}
				if calls++; err != nil {
					failures = append(failures, err.Error())
				} else if value == "" {
					failures = append(failures, "the API server did not call the hook")
				}
			}
		})
		_, err := cluster.Kubectl(ctx, "", "rollout", "restart", "deployment", project, "--namespace="+project)
		Expect(err).NotTo(HaveOccurred())
		_, err = cluster.Kubectl(ctx, "", "rollout", "status", "deployment", project, "--namespace="+project, "--timeout=4m")
		Eventually(ctx, podsOfProject).WithTimeout(2 * time.Minute).ShouldNot(ContainElement(BeElementOf(before))) // they serve calls while they stop
		stop()
		load.Wait()
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("calls during the rollout", calls)
		Expect(calls).To(BeNumerically(">", 10))
		Expect(failures).To(BeEmpty())
	})

	It("does not let a drain remove all replicas", func(ctx context.Context) {
		ready := podsOfProject(ctx)
		Expect(ready).To(HaveLen(2))
		Eventually(ctx, evict).WithArguments(ready[0]).WithTimeout(time.Minute).Should(Succeed()) // the status of the budget may be late
		Expect(evict(ctx, ready[1])).To(MatchError(apierrors.IsTooManyRequests, "IsTooManyRequests"))
		Eventually(ctx, evict).WithArguments(ready[1]).WithTimeout(2 * time.Minute).Should(Succeed()) // another one is ready
	})
})

// team returns the label of a new Pod that the hook sets. The Pod is not stored.
func team(ctx context.Context) (string, error) {
	pod, err := clients.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "canary-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1"}}}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", err
	}
	return pod.Labels[teamLabel], nil
}

// podsOfProject returns the names of the Pods of the project that exist.
func podsOfProject(ctx context.Context) (names []string) {
	GinkgoHelper()
	pods, err := clients.CoreV1().Pods(project).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	return names
}

func projectReplicas(ctx context.Context) (int32, error) {
	d, err := clients.AppsV1().Deployments(project).Get(ctx, project, metav1.GetOptions{})
	return d.Status.AvailableReplicas, err
}

func evict(ctx context.Context, pod string) error {
	return clients.PolicyV1().Evictions(project).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: project}})
}
