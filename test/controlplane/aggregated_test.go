// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	wardle     = "wardle"             // the namespace of the aggregated API server, and the name of its Service
	wardleAPIs = "wardle.example.com" // its API group
)

// aggregated are the objects of k8s.io/sample-apiserver. PROGRAM is its path, and DIR the folder of its certificate.
const aggregated = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: wardle, namespace: wardle}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: wardle-delegates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}
subjects: [{kind: ServiceAccount, name: wardle, namespace: wardle}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: wardle}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
- {apiGroups: [admissionregistration.k8s.io], resources: ["*"], verbs: [get, list, watch]}
- {apiGroups: [flowcontrol.apiserver.k8s.io], resources: [flowschemas, prioritylevelconfigurations], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: wardle}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: wardle}
subjects: [{kind: ServiceAccount, name: wardle, namespace: wardle}]
---
apiVersion: v1
kind: Service
metadata: {name: wardle, namespace: wardle}
spec: {selector: {app: wardle}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: wardle, namespace: wardle}
spec:
  selector: {matchLabels: {app: wardle}}
  template:
    metadata: {labels: {app: wardle}}
    spec:
      serviceAccountName: wardle
      containers:
      - name: wardle
        image: PROGRAM
        args:
        - --bind-address=127.0.0.1
        - --secure-port=$(PORT)
        - --etcd-servers=ETCD
        - --kubeconfig=$(KUBECONFIG)
        - --authentication-kubeconfig=$(KUBECONFIG)
        - --authorization-kubeconfig=$(KUBECONFIG)
        - --tls-cert-file=DIR/tls.crt
        - --tls-private-key-file=DIR/tls.key
        readinessProbe: {httpGet: {scheme: HTTPS, path: /readyz, port: 9443}}
`

// aggregatedReader lets the aggregated API server read the CA that signs kube-apiserver's proxy certificate. The other
// objects are in another namespace.
const aggregatedReader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: wardle-authentication, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: wardle, namespace: wardle}]
`

// apiServices registers a version of the API group. The caBundle is missing.
const apiServices = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: VERSION.wardle.example.com}
spec: {group: wardle.example.com, version: VERSION, groupPriorityMinimum: 1000, versionPriority: 15, service: {namespace: wardle, name: wardle}}
---
`

var wardleVersions = []string{"v1alpha1", "v1beta1"}

// A flunder has the fields of a Flunder, an object of the aggregated API server, that the hooks read.
type flunder struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Reference     string `json:"reference,omitempty"`
		ReferenceType string `json:"referenceType,omitempty"`
	} `json:"spec"`
}

// An admissionLog lists the calls of hooks, each as a line of text.
type admissionLog struct {
	mu    sync.Mutex
	calls []string
}

// note records a call, unless it is a dry run. Only requests that wait for a configuration to be active are dry runs.
func (l *admissionLog) note(hook string, m *webhook.Request[flunder]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !m.DryRun {
		l.calls = append(l.calls, fmt.Sprintf("%s: %s %s %s as %s", hook, m.Operation, m.RequestKind.Version, m.Name, m.Kind.Version))
	}
}

func (l *admissionLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.calls...)
}

// flunderHooks set a label that repeats the reference, and keep protected Flunders from being deleted. They are
// registered for one version.
func flunderHooks(log *admissionLog) []*webhook.Hook {
	rule := func(on func(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
		return on(wardleAPIs, "v1alpha1", "flunders")
	}
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "label.flunders.example.com", Rules: webhook.Rules(rule(webhook.OnWrite))},
			func(_ context.Context, req *webhook.Request[flunder]) error {
				log.note("label", req)
				if req.Object.Labels == nil {
					req.Object.Labels = map[string]string{}
				}
				req.Object.Labels["reference"] = req.Object.Spec.Reference
				return nil
			}),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "protect.flunders.example.com", Rules: webhook.Rules(rule(webhook.OnWrite), rule(webhook.OnDelete))},
			func(_ context.Context, req *webhook.Request[flunder]) error {
				log.note("protect", req)
				subject, err := req.ObjectOrOld()
				if err == nil && req.Object == nil && subject.Labels["reference"] == "kept" {
					err = webhook.Denyf("Flunder %q is kept", subject.Name)
				}
				return err
			}),
	}
}

var _ = Describe("an aggregated API server", Ordered, func() {
	var log admissionLog
	var source *certs.SelfManaged

	BeforeAll(func(ctx context.Context) {
		startNode(ctx, "node-w")
		_, err := cluster.Kubectl(ctx, "", "create", "namespace", wardle)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(deleteNamespace, wardle)
		source = certify(ctx)
		dir := GinkgoT().TempDir()
		writeCertificateFiles(source, dir)
		apply(ctx, wardle, strings.NewReplacer("PROGRAM", buildSampleAPIServer(ctx), "DIR", dir, "ETCD", cluster.Etcd()).Replace(aggregated))
		apply(ctx, "kube-system", aggregatedReader)
		for _, version := range wardleVersions {
			apply(ctx, "", strings.ReplaceAll(apiServices, "VERSION", version))
		}
		DeferCleanup(func(ctx context.Context) {
			for _, version := range wardleVersions {
				_, err := cluster.Kubectl(ctx, "", "delete", "apiservice", version+"."+wardleAPIs)
				Expect(err).NotTo(HaveOccurred())
			}
		})
		stop, err := cluster.Serve(ctx, "flunders", flunderHooks(&log)...)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(stop)
	})

	It("is reached through its APIServices, whose caBundle has the CA of pkg/certs", func(ctx context.Context) {
		for _, version := range wardleVersions {
			Eventually(ctx, cluster.Kubectl).WithArguments("", "wait", "--for=condition=Available", "--timeout=1s", "apiservice/"+version+"."+wardleAPIs).
				WithTimeout(2 * time.Minute).Should(ContainSubstring("condition met"))
		}
		bundle, err := cluster.Kubectl(ctx, "", "get", "apiservice", wardleVersions[0]+"."+wardleAPIs, "-o", `go-template={{.spec.caBundle | base64decode}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(bundle).To(Equal(string(source.Bundle())))
	})

	It("calls hooks for its objects in both versions, from CREATE to DELETE", func(ctx context.Context) {
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) { // until the API server has read the configuration
			canary := newFlunder("v1alpha1", "canary", "x")
			err := cluster.Client.Create(ctx, canary, client.DryRunAll)
			return canary.GetLabels(), err
		}).WithTimeout(time.Minute).Should(HaveKeyWithValue("reference", "x"))
		for _, version := range wardleVersions {
			name := "flunder-" + version
			f := newFlunder(version, name, "kept")
			Expect(cluster.Client.Create(ctx, f)).To(Succeed())
			Expect(f.GetLabels()).To(HaveKeyWithValue("reference", "kept"))
			err := cluster.Client.Delete(ctx, f)
			Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf(`admission webhook "protect.flunders.example.com" denied the request: Flunder %q is kept`, name))))
			Expect(unstructured.SetNestedField(f.Object, "free", "spec", referenceField[version])).To(Succeed())
			Expect(cluster.Client.Update(ctx, f)).To(Succeed())
			Expect(f.GetLabels()).To(HaveKeyWithValue("reference", "free"))
			Expect(cluster.Client.Delete(ctx, f)).To(Succeed())
		}
		AddReportEntry("calls", strings.Join(log.all(), "\n"))
		Expect(log.all()).To(Equal(wantedCalls()))
	})

	It("fails no request while its CA is replaced", func(ctx context.Context) {
		before := string(source.Bundle())
		var requests atomic.Int64
		ended := startRequests(ctx, &requests)
		_, err := cluster.Kubectl(ctx, "", "patch", "secret", "wardle-ca", "--namespace="+wardle, "--patch", `{"stringData":{"rotate":"now"}}`)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() bool { return !strings.Contains(string(source.Bundle()), before) }).WithTimeout(3 * time.Minute).Should(BeTrue())
		Expect(ended()).To(Succeed())
		AddReportEntry("requests", requests.Load())
		Expect(requests.Load()).To(BeNumerically(">", 50))
	})
})

// certify starts a source of certificates for the Service. It keeps the caBundles of the APIServices up to date. Its CAs live for a
// short time, so that an old one is soon retired.
func certify(ctx context.Context) *certs.SelfManaged {
	GinkgoHelper()
	options := certs.Options{
		Config: cluster.Config(), Namespace: wardle, Secret: "wardle-ca", DNSNames: certs.ServiceNames(wardle, wardle),
		LeafLifetime: 20 * time.Second, Settle: 2 * time.Second, ClockSkew: -1,
	}
	for _, version := range wardleVersions {
		options.Targets = append(options.Targets, certs.Target{Kind: certs.APIService, Name: version + "." + wardleAPIs})
	}
	source, err := certs.NewSelfManaged(options)
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- source.Start(running) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	return source
}

// writeCertificateFiles writes the certificate of the source to files whenever it changes. A sidecar of an API server that
// reads its certificate only from files would do the same.
func writeCertificateFiles(source *certs.SelfManaged, dir string) {
	GinkgoHelper()
	stop, ended := make(chan struct{}), make(chan struct{})
	var written *x509.Certificate
	write := func() error {
		c, err := source.GetCertificate(nil)
		if err != nil || c.Leaf.Equal(written) {
			return err
		}
		key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		if err != nil {
			return err
		}
		var chain []byte
		for _, der := range c.Certificate {
			chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
		}
		for name, content := range map[string][]byte{"tls.crt": chain, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file+".new", content, 0o600); err != nil {
				return err
			}
			if err := os.Rename(file+".new", file); err != nil {
				return err
			}
		}
		written = c.Leaf
		return nil
	}
	Eventually(write).WithTimeout(30 * time.Second).Should(Succeed())
	go func() {
		defer close(ended)
		defer GinkgoRecover()
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				Expect(write()).To(Succeed())
			}
		}
	}()
	DeferCleanup(func() { close(stop); <-ended })
}

func buildSampleAPIServer(ctx context.Context) string {
	GinkgoHelper()
	program := filepath.Join(GinkgoT().TempDir(), "sample-apiserver")
	out, err := exec.CommandContext(ctx, "go", "build", "-C", "sampleapiserver", "-o", program, "k8s.io/sample-apiserver").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return program
}

// referenceField is the field with the reference in each version.
var referenceField = map[string]string{"v1alpha1": "reference", "v1beta1": "flunderReference"}

func newFlunder(version, name, reference string) *unstructured.Unstructured {
	f := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{referenceField[version]: reference, "referenceType": "Flunder"}}}
	f.SetGroupVersionKind(schema.GroupVersionKind{Group: wardleAPIs, Version: version, Kind: "Flunder"})
	f.SetNamespace("default")
	f.SetName(name)
	return f
}

// wantedCalls lists the calls for a Flunder of each version that is created, kept from being deleted, changed and deleted.
// The hooks get each one in the version of their rules.
func wantedCalls() (calls []string) {
	for _, version := range wardleVersions {
		for _, step := range []string{"label: CREATE", "protect: CREATE", "protect: DELETE", "label: UPDATE", "protect: UPDATE", "protect: DELETE"} {
			calls = append(calls, fmt.Sprintf("%s %s flunder-%s as v1alpha1", step, version, version))
		}
	}
	return calls
}

// startRequests creates Flunders as dry runs, one after the other, until ended is called. ended returns the first error.
func startRequests(ctx context.Context, done *atomic.Int64) (ended func() error) {
	stop, result := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				result <- nil
				return
			default:
			}
			if err := cluster.Client.Create(ctx, newFlunder("v1beta1", "canary", "x"), client.DryRunAll); err != nil {
				result <- err
				return
			}
			done.Add(1)
		}
	}()
	return func() error {
		close(stop)
		return <-result
	}
}
