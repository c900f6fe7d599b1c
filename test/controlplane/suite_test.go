// SPDX-License-Identifier: Apache-2.0

// Package controlplane holds the specs that run hooks under a whole control plane: kube-apiserver,
// kube-controller-manager with all its controllers, and kube-scheduler.
package controlplane

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/internal/devcert"
)

// The control plane and its clients are the same for all specs.
var (
	cluster   *testcluster.Cluster
	clients   *kubernetes.Clientset
	auditFile string
)

func TestControlPlane(t *testing.T) {
	need.APIServer(t)
	log.SetLogger(logr.Discard()) // some requests of the specs have warnings
	RegisterFailHandler(Fail)
	RunSpecs(t, "admitkit under a whole control plane")
}

// auditPolicy records which requests change something, with who made them.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
`

var _ = BeforeSuite(func(ctx context.Context) {
	auditFile = filepath.Join(GinkgoT().TempDir(), "audit.log")
	proxy, err := devcert.NewCA() // signs the certificate with which kube-apiserver forwards requests to aggregated ones
	Expect(err).NotTo(HaveOccurred())
	cert, key, err := proxy.Client("front-proxy")
	Expect(err).NotTo(HaveOccurred())
	cluster, err = testcluster.StartWith(ctx, apiserver.Options{
		Flags: map[string][]string{
			"audit-log-path": {auditFile}, "audit-log-mode": {"blocking"}, "requestheader-username-headers": {"X-Remote-User"},
			"requestheader-group-headers": {"X-Remote-Group"}, "requestheader-extra-headers-prefix": {"X-Remote-Extra-"},
		},
		Files: map[string][]byte{
			"audit-policy-file": []byte(auditPolicy), "egress-selector-config-file": network.start(ctx),
			"requestheader-client-ca-file": proxy.Bundle, "proxy-client-cert-file": cert, "proxy-client-key-file": key,
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	Expect(cluster.StartControllers("*")).To(Succeed())
	Expect(cluster.StartScheduler()).To(Succeed())
	clients, err = kubernetes.NewForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
})

// newNamespace creates a namespace with a name that begins with prefix. It is deleted after the spec.
func newNamespace(ctx context.Context, prefix string) string {
	GinkgoHelper()
	ns, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) error {
		err := clients.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{})
		return client.IgnoreNotFound(err)
	})
	return ns.Name
}

// apply applies manifests in a namespace.
func apply(ctx context.Context, namespace, manifests string) {
	GinkgoHelper()
	_, err := cluster.Kubectl(ctx, manifests, "apply", "--namespace="+namespace, "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}
