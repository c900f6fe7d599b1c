// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/internal/livetest"
)

// victim is an environment variable with the path of a kubeconfig. If it is set, the test process runs the program and
// kills itself.
const victim = "SEAT_RESERVATION_VICTIM"

// victimMain runs the program, instead of tests, if this process is the victim. The process inherits the listener of
// the hooks as its first extra file. It kills itself as soon as the API server has stored a reservation.
func victimMain() {
	kubeconfig := os.Getenv(victim)
	if kubeconfig == "" {
		return
	}
	p := newProgram()
	var err error
	if p.Config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		panic(err)
	}
	p.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return suicidal{next} })
	if p.Listener, err = net.FileListener(os.NewFile(3, "listener")); err != nil {
		panic(err)
	}
	p.Main()
	os.Exit(0)
}

// suicidal is a transport that kills the process after the first successful write of a ConfigMap, without any cleanup.
type suicidal struct{ next http.RoundTripper }

func (s suicidal) RoundTrip(req *http.Request) (*http.Response, error) {
	ofLedger := strings.Contains(req.URL.Path, "/configmaps")
	if ofLedger && req.URL.Query().Has("watch") { // otherwise the reconciler could release the seat before the kill
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	response, err := s.next.RoundTrip(req)
	if !ofLedger || req.Method == http.MethodGet || err != nil || response.StatusCode >= 300 {
		return response, err
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until the signal arrives
}

// The program is killed after it has reserved a seat, and before the Pod is stored. Its successor has only the
// permissions that the program prints.
func TestKillAfterTheReservation(t *testing.T) {
	g, namespace := setUp(t)
	key := client.ObjectKey{Namespace: "seat-reservation", Name: "seats"}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	args := []string{"--self-managed", "--url=https://" + listener.Addr().String(), "--ops-addr=", "--seats=1", "--hold=1ns"}
	kubeconfig := account(t, key.Namespace, args)

	file, err := listener.(*net.TCPListener).File()
	g.Expect(err).NotTo(HaveOccurred())
	process := exec.CommandContext(t.Context(), os.Args[0], args...)
	process.Env = append(os.Environ(), victim+"="+kubeconfig)
	process.ExtraFiles = []*os.File{file}
	log := gbytes.NewBuffer()
	process.Stderr = log
	g.Expect(process.Start()).To(Succeed())
	g.Expect(file.Close()).To(Succeed())
	g.Eventually(log, patience).Should(gbytes.Say("the webhooks are installed and enforced"))

	err = cluster.Client.Create(t.Context(), pod(namespace, "lost"))
	g.Expect(err).To(MatchError(ContainSubstring("failed calling webhook")))
	g.Expect(process.Wait()).To(MatchError("signal: killed"))
	g.Expect(ledger(t.Context(), key)()).To(Equal([]string{"lost?"}))
	_, err = gates(t.Context(), namespace, "lost")()
	g.Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))

	run(t, listener, kubeconfig, args)
	g.Eventually(func() error { return cluster.Client.Create(t.Context(), pod(namespace, "next")) }).Should(Succeed())
	g.Eventually(gates(t.Context(), namespace, "next")).Should(BeEmpty())
	g.Eventually(ledger(t.Context(), key)).Should(Equal([]string{"next"}))
}

// account creates the namespace and the ServiceAccount of the program, with the permissions that the program prints. It
// returns the path of a kubeconfig file for the ServiceAccount. After the test it deletes the namespace and the
// configurations that the program has installed.
func account(t *testing.T, namespace string, args []string) string {
	t.Helper()
	t.Cleanup(func() {
		for _, configuration := range []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}} {
			configuration.SetName(namespace)
			if err := cluster.Client.Delete(context.WithoutCancel(t.Context()), configuration); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
		livetest.DeleteNamespace(t, cluster, namespace)
	})
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace}},
	} {
		if err := cluster.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	var permissions bytes.Buffer
	if err := newProgram().Run(t.Context(), append(args, "--print-rbac"), &permissions, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(t.Context(), permissions.String(), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.ServiceAccount(t.Context(), namespace, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// run runs the program in this process until the end of the test.
func run(t *testing.T, listener net.Listener, kubeconfig string, args []string) {
	t.Helper()
	p := newProgram()
	p.Listener = listener
	args = append(args, "--kubeconfig="+kubeconfig)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var log bytes.Buffer // written by one logger, and read at the end
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, args, io.Discard, &log) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the program ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the log of the program:\n%s", log.String())
		}
	})
}
