// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/internal/livetest"
)

// TestTwoReplicasManageThemselves runs two replicas of the program with the arguments of the Deployment and
// the rights of the ServiceAccount. They create the certificates and configurations. Unlike in a cluster,
// they run on this machine and are called by URL.
func TestTwoReplicasManageThemselves(t *testing.T) {
	apply(t)
	kubeconfig, err := cluster.ServiceAccount(t.Context(), "sidecar-injector", "sidecar-injector")
	if err != nil {
		t.Fatal(err)
	}
	args := append(livetest.Arguments(t, cluster), "--proxy-image="+image, "--kubeconfig="+kubeconfig)
	url, stopReplica := startReplica(t, args...)
	args = append(args, "--url="+url)
	_, stopOther := startReplica(t, args...)

	eventually(t, "the Pod gets its proxy", func() bool { return injected(t) })
	eventually(t, "both hooks are there, and may fail", func() bool { return slices.Equal(policies(t), []string{"Ignore", "Ignore"}) })
	rollOut(t)
	eventually(t, "the hooks are promoted", func() bool { return slices.Equal(policies(t), []string{"Fail", "Fail"}) })

	// The program must not create a Secret. After another client creates it, the program stores the CA again.
	ca := storedCA(t)
	if err := cluster.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: caSecret}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(t.Context(), "", "apply", "-f", "manifests/rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	if len(ca) == 0 {
		t.Fatal("the Secret has no CA")
	}
	eventually(t, "the Secret holds the CA", func() bool { return bytes.Equal(storedCA(t), ca) })

	if !injected(t) {
		t.Error("the Pod has no proxy")
	}

	if log := uninstall(t, kubeconfig); !strings.Contains(log, "the webhooks are removed, and the API server calls none of them") {
		t.Errorf("the log is %s", log)
	}
	if injected(t) {
		t.Error("after uninstalling, the Pod still gets a proxy")
	}
	if got := policies(t); len(got) > 0 {
		t.Errorf("after uninstalling, there are still hooks with the policies %v", got)
	}
	stopOther()
	stopReplica()
	// Uninstall again, when no replica serves the hooks.
	if log := uninstall(t, kubeconfig); !strings.Contains(log, "there are no webhooks to remove") || strings.Contains(log, "are removed,") {
		t.Errorf("the log is %s", log)
	}
}

// TestUnusableSecretIsReported runs the program with a Secret that it cannot use. The program must report this at once,
// although its server waits for an hour before it stops.
func TestUnusableSecretIsReported(t *testing.T) {
	apply(t)
	kubeconfig, err := cluster.ServiceAccount(t.Context(), "sidecar-injector", "sidecar-injector")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(t.Context(), "", "patch", "secret", "-n", caSecret.Namespace, caSecret.Name, "-p", `{"stringData": {"tls.crt": "not a certificate"}}`); err != nil {
		t.Fatal(err)
	}
	args := append(livetest.Arguments(t, cluster), "--proxy-image="+image, "--kubeconfig="+kubeconfig,
		"--url=https://127.0.0.1:9443", "--addr=127.0.0.1:0", "--ops-addr=", "--shutdown-delay=1h")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	const reason = "Secret sidecar-injector/sidecar-injector-ca: the Secret contains data that is not an admitkit CA"
	var log bytes.Buffer // read only after the program has ended
	err = newProgram().Run(ctx, args, io.Discard, &log)
	if err == nil || !strings.HasPrefix(err.Error(), reason) || !strings.HasSuffix(err.Error(), "choose another name, or delete this Secret") || ctx.Err() != nil {
		t.Errorf("the program ended with %v", err)
	}
	if !strings.Contains(log.String(), `"msg":"the program is stopping because a part of it failed","err":"`+reason) {
		t.Errorf("the log is\n%s", log.String())
	}
	uninstall(t, kubeconfig)
}

// apply applies the manifests for the duration of a test. No controller runs the Deployment.
func apply(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := cluster.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "-k", "manifests", "--wait=false", "--ignore-not-found"); err != nil {
			t.Error(err)
		}
		livetest.DeleteNamespace(t, cluster, "sidecar-injector")
	})
	out, err := cluster.Kubectl(t.Context(), "", "apply", "-k", "manifests")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out)
}

// rollOut sets the Deployment's status to ready.
func rollOut(t *testing.T) {
	t.Helper()
	var d appsv1.Deployment
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: "sidecar-injector", Name: "sidecar-injector"}, &d); err != nil {
		t.Fatal(err)
	}
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if err := cluster.Client.Status().Update(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
}

// startReplica runs the program with these arguments until the end of the test or a call of stop. It adds --url if
// it is missing, and returns the address of the hooks on loopback. The test fails if the program ends with an error.
func startReplica(t *testing.T, args ...string) (url string, stop func()) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram()
	p.Listener = listener
	url = "https://" + listener.Addr().String()
	// The last of several flags with the same name applies.
	args = append([]string{"--url=" + url}, append(args, "--ops-addr=", "--shutdown-delay=0")...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var log bytes.Buffer // written by one logger, and read at the end
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, args, io.Discard, &log) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the replica at %s ended with %v", url, err)
		}
		if t.Failed() {
			t.Logf("the log of the replica at %s:\n%s", url, log.String())
		}
	})
	t.Cleanup(stop)
	return url, stop
}

// uninstall runs the command for uninstalling from the README and returns its log.
func uninstall(t *testing.T, kubeconfig string) string {
	t.Helper()
	var log strings.Builder
	if err := newProgram().Run(t.Context(), []string{"--self-managed", "--uninstall", "--kubeconfig=" + kubeconfig}, io.Discard, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	return log.String()
}

// injected reports whether a new Pod gets a proxy. The create never fails, because the API server never calls
// the validating hook without the mutating one.
func injected(t *testing.T) bool {
	t.Helper()
	pod, err := create(t, corev1.PodSpec{Containers: []corev1.Container{container("shop")}})
	if err != nil {
		t.Fatal(err)
	}
	return len(pod.Spec.InitContainers) == 1
}

// policies returns the failure policies of the hooks in the API server.
func policies(t *testing.T) (all []string) {
	t.Helper()
	add := func(name string, policy *admissionregistrationv1.FailurePolicyType) {
		if !strings.HasPrefix(name, "marker.") {
			all = append(all, string(*policy))
		}
	}
	meta := metav1.ObjectMeta{Name: "sidecar-injector"}
	mutating := admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}
	get(t, &mutating)
	for _, w := range mutating.Webhooks {
		add(w.Name, w.FailurePolicy)
	}
	validating := admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	get(t, &validating)
	for _, w := range validating.Webhooks {
		add(w.Name, w.FailurePolicy)
	}
	return all
}

var caSecret = metav1.ObjectMeta{Namespace: "sidecar-injector", Name: "sidecar-injector-ca"}

// storedCA returns the CA certificate in the Secret, or nil.
func storedCA(t *testing.T) []byte {
	t.Helper()
	secret := corev1.Secret{ObjectMeta: caSecret}
	get(t, &secret)
	return secret.Data["ca.crt"]
}

// get reads an object from the API server. A missing object is not an error.
func get(t *testing.T, object client.Object) {
	t.Helper()
	if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}
