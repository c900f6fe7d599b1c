// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const galleryFolder = "../../../examples/gallery"

// TestGallery runs all hooks of the gallery with its manifests. Doctor must find nothing.
func TestGallery(t *testing.T) {
	r := newRig(t)
	program := filepath.Join(t.TempDir(), "gallery")
	run(t, exec.CommandContext(t.Context(), "go", "build", "-o", program, galleryFolder))
	args := galleryArguments(t, program)
	w := r.gallery(t)
	address := w.runGallery(t, program, args)
	for i := range w.pods {
		w.route(t, w.address(i), address)
		for _, k := range w.kubelets {
			k.add(w.pods[i])
		}
	}
	w.route(t, net.JoinHostPort(w.service.Spec.ClusterIP, "443"), address)
	hooks := w.registerGallery(t, run(t, exec.CommandContext(t.Context(), program, append(args, "--print-configuration")...)))
	if hooks < 30 {
		t.Fatalf("the gallery has only %d hooks", hooks)
	}
	report := r.doctor(t)
	if report.Webhooks != hooks {
		t.Errorf("%d webhooks were checked, want %d", report.Webhooks, hooks)
	}
	if got := found(report); len(got) > 0 || len(report.NotChecked) > 0 {
		t.Errorf("found %q and could not check %v", got, report.NotChecked)
	}
}

func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, messages.String())
	}
	return string(out)
}

// galleryArguments returns the arguments that enable all hooks.
func galleryArguments(t *testing.T, program string) []string {
	t.Helper()
	help, _ := exec.CommandContext(t.Context(), program, "--help").CombinedOutput() // its exit code is not 0
	match := regexp.MustCompile(`names. of the admission controllers to run|repeat the flag for more: (.*)`).FindSubmatch(help)
	if match == nil || len(match[1]) == 0 {
		t.Fatalf("the help lists no hooks:\n%s", help)
	}
	args := []string{"--enable=" + strings.ReplaceAll(string(match[1]), " ", "")}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"EventRateLimit":     "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Server, qps: 1000, burst: 1000}]\n",
		"ImagePolicyWebhook": "imagePolicy: {kubeConfigFile: " + filepath.Join(dir, "images") + "}",
		"PodPreset":          "[]",
		"SidecarInjection":   "image: a",
		"images":             "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'https://a'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		if name != "images" {
			args = append(args, "--config="+name+"="+filepath.Join(dir, name))
		}
	}
	return args
}

// gallery applies the manifests of the gallery, and does what controllers, nodes and cert-manager would do.
func (r *rig) gallery(t *testing.T) *world {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(kubeconfig, r.server.Kubeconfig, 0o600))
	manifests := run(t, r.server.Kubectl(t.Context(), kubeconfig, "kustomize", filepath.Join(galleryFolder, "manifests")))
	documents := slices.DeleteFunc(strings.Split(manifests, "\n---\n"), func(d string) bool {
		return strings.Contains(d, "cert-manager.io/v1") || strings.Contains(d, "WebhookConfiguration")
	})
	apply := r.server.Kubectl(t.Context(), kubeconfig, "apply", "-f", "-")
	apply.Stdin = strings.NewReader(strings.Join(documents, "\n---\n"))
	run(t, apply)
	w := &world{rig: r, t: t, namespace: "gallery", ca: newAuthority(t)}
	var err error
	w.service, err = r.client.CoreV1().Services("gallery").Get(t.Context(), "gallery", metav1.GetOptions{})
	must(t, err)
	deployment, err := r.client.AppsV1().Deployments("gallery").Get(t.Context(), "gallery", metav1.GetOptions{})
	must(t, err)
	w.slice = &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "gallery", Name: "gallery-1", Labels: map[string]string{discoveryv1.LabelServiceName: "gallery"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](hookPort)}},
	}
	for i := range int(*deployment.Spec.Replicas) {
		w.addPod(t, deployment, i)
	}
	must(t, second(r.client.DiscoveryV1().EndpointSlices("gallery").Create(t.Context(), w.slice, metav1.CreateOptions{})))
	w.createEndpoints(t, "gallery")
	return w
}

// addPod creates a Pod of a Deployment.
func (w *world) addPod(t *testing.T, of *appsv1.Deployment, i int) {
	t.Helper()
	ip := fmt.Sprintf("10.244.200.%d", i+1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: fmt.Sprintf("%s-%d", of.Name, i), Labels: maps.Clone(of.Spec.Template.Labels)}, Spec: of.Spec.Template.Spec}
	pod.Spec.NodeName = nodeName(i)
	pod, err := w.client.CoreV1().Pods(of.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	pod.Status = runningAt(ip)
	must(t, second(w.client.CoreV1().Pods(of.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})))
	w.pods = append(w.pods, pod)
	w.slice.Endpoints = append(w.slice.Endpoints, endpointOf(pod))
}

// runGallery starts the program, waits until it is ready, and returns its address.
func (w *world) runGallery(t *testing.T, program string, args []string) string {
	t.Helper()
	dir := t.TempDir()
	certificate := w.ca.serving(t, "gallery.gallery.svc")
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "config"), w.server.Kubeconfig, 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	must(t, listener.Close())
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append(args, "--addr="+address, "--ops-addr=", "--shutdown-delay=0", "--kubeconfig="+filepath.Join(dir, "config"),
		"--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"))...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	must(t, cmd.Start())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was interrupted
		if t.Failed() {
			t.Logf("the log of the gallery:\n%s", &log)
		}
	})
	eventually(t, "the gallery serves", func() bool {
		connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
	return address
}

// registerGallery stores the configurations that the program prints, with the CA that cert-manager would inject. It
// returns the number of webhooks.
func (w *world) registerGallery(t *testing.T, printed string) (hooks int) {
	t.Helper()
	for document := range strings.SplitSeq(printed, "---\n") {
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(document), &u.Object))
		if u.Object == nil {
			continue
		}
		u.SetAnnotations(map[string]string{"lint.admitkit.dev/ignore": "AK206=as the original, NamespaceExists is called for every resource in a namespace"})
		webhooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		must(t, err)
		for _, one := range webhooks {
			must(t, unstructured.SetNestedField(one.(map[string]any), base64.StdEncoding.EncodeToString(w.ca.bundle), "clientConfig", "caBundle"))
			must(t, unstructured.SetNestedField(one.(map[string]any), int64(2), "timeoutSeconds")) // many hooks are called for Pods
			hooks++
		}
		must(t, unstructured.SetNestedSlice(u.Object, webhooks, "webhooks"))
		resources := dynamic.NewForConfigOrDie(w.config).Resource(resource(registration, "v1", strings.ToLower(u.GetKind())+"s"))
		must(t, second(resources.Create(t.Context(), u, metav1.CreateOptions{})))
		t.Cleanup(func() {
			must(t, resources.Delete(context.WithoutCancel(t.Context()), u.GetName(), metav1.DeleteOptions{}))
		})
	}
	return hooks
}
