// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// A rig is an API server whose cluster network leads to this process.
type rig struct {
	*network
	server *apiserver.Server
	config *rest.Config
	client *kubernetes.Clientset
	// kubelets are those of the two nodes.
	kubelets []*kubelet
}

const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %s}}
`

// newRig starts an API server with these extra flags.
func newRig(t *testing.T, flags ...map[string][]string) *rig {
	t.Helper()
	need.APIServer(t)
	n := newNetwork(t)
	o := apiserver.Options{Files: map[string][]byte{"egress-selector-config-file": n.egress()}, Flags: map[string][]string{}}
	for _, more := range flags {
		maps.Copy(o.Flags, more)
	}
	server, err := apiserver.Run(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{network: n, server: server, config: server.Config, client: clientFor(server.Config)}
	for i := range 2 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		node, err := r.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		must(t, err)
		ip := fmt.Sprintf("10.243.0.%d", i+1)
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
		must(t, second(r.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})))
		r.kubelets = append(r.kubelets, n.serveKubelet(t, ip+":10250"))
	}
	return r
}

// egress returns the configuration that leads an API server to the network.
func (n *network) egress() []byte { return fmt.Appendf(nil, egress, n.proxy) }

func clientFor(config *rest.Config) *kubernetes.Clientset {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated
	return kubernetes.NewForConfigOrDie(config)
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// doctor runs the command as the user of the configuration.
func (r *rig) doctor(t *testing.T, change ...func(*Options)) *Report {
	t.Helper()
	o := Options{FailOn: "warning", ExpiresWithin: 7 * 24 * time.Hour, timeout: 2 * time.Second, dial: r.dialFromHere}
	for _, c := range change {
		c(&o)
	}
	s := &screen.Screen{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Getenv: os.Getenv}
	report, err := o.run(t.Context(), s, rest.CopyConfig(r.config))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// A world is a namespace with a healthy webhook: two Pods, and everything around them. The API server calls the Pods
// through the network of the rig, which leads to a server in this process.
type world struct {
	*rig
	t          *testing.T
	namespace  string
	ca         *authority
	servers    []*servedWebhook // by Pod
	service    *corev1.Service
	pods       []*corev1.Pod
	slice      *discoveryv1.EndpointSlice
	deployment *appsv1.Deployment
	budget     *policyv1.PodDisruptionBudget
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
}

const (
	hookPort = 9443 // of the Pods
	path     = "/validate"
)

var worlds atomic.Int64

var appLabels = map[string]string{"app": "hook"}

// world creates a healthy webhook. The changes are made before the objects are created.
func (r *rig) world(t *testing.T, before ...func(*world)) *world {
	t.Helper()
	number := worlds.Add(1)
	w := &world{rig: r, t: t, namespace: fmt.Sprintf("shop-%03d", number), ca: newAuthority(t)}
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "hook", Labels: appLabels}
	w.service = &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: appLabels, Ports: []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromString("https")}},
	}}
	template := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "hook", Image: "example.com/hook:v1", Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: hookPort}},
	}}}
	w.deployment = &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: appLabels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: appLabels}, Spec: template},
	}}
	w.budget = &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: appLabels},
	}}
	w.slice = &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: w.namespace, Name: "hook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](hookPort)}},
	}
	for i := range 2 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("hook-%d", i), Labels: maps.Clone(appLabels)}, Spec: template}
		pod.Spec.NodeName = nodeName(i)
		pod.Status = runningAt(fmt.Sprintf("10.244.%d.%d", number, i+1))
		w.pods = append(w.pods, pod)
		w.servers = append(w.servers, &servedWebhook{certificate: w.ca.serving(t, w.host()), path: path, apis: "/apis/", decide: allow})
		w.slice.Endpoints = append(w.slice.Endpoints, endpointOf(pod))
	}
	w.validating = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: w.namespace + ".example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds: ptr.To[int32](5), FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: w.namespace, Name: "hook", Path: ptr.To(path)}, CABundle: w.ca.bundle,
		},
		Rules:             rules("CREATE", "", "configmaps"),
		NamespaceSelector: except(metav1.NamespaceSystem, w.namespace),
	}}}
	for _, change := range before {
		change(w)
	}
	w.serve(t)
	w.create(t)
	return w
}

// serve starts a server for each Pod, and makes it known to the network.
func (w *world) serve(t *testing.T) {
	t.Helper()
	for i, pod := range w.pods {
		w.servers[i].serve(t, w.namespace+".example.com")
		w.route(t, w.address(i), w.servers[i].address)
		for _, k := range w.kubelets {
			k.add(pod)
		}
	}
}

// address returns the address of a Pod in the cluster.
func (w *world) address(pod int) string {
	return net.JoinHostPort(w.pods[pod].Status.PodIP, strconv.Itoa(hookPort))
}

// createEndpoints creates the object Endpoints that a controller keeps beside EndpointSlices.
func (w *world) createEndpoints(t *testing.T, name string) {
	t.Helper()
	endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Subsets: []corev1.EndpointSubset{{}}} //nolint:staticcheck // the API server's proxy uses this type
	for _, p := range w.slice.Ports {
		endpoints.Subsets[0].Ports = append(endpoints.Subsets[0].Ports, corev1.EndpointPort{Name: *p.Name, Port: *p.Port})
	}
	for _, e := range w.slice.Endpoints {
		endpoints.Subsets[0].Addresses = append(endpoints.Subsets[0].Addresses, corev1.EndpointAddress{IP: e.Addresses[0], TargetRef: e.TargetRef})
	}
	must(t, second(w.client.CoreV1().Endpoints(w.namespace).Create(t.Context(), endpoints, metav1.CreateOptions{})))
}

// runningAt returns the status of a ready Pod.
func runningAt(ip string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
}

func endpointOf(pod *corev1.Pod) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{pod.Status.PodIP}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name},
	}
}

// except returns a selector for all namespaces but these.
func except(namespaces ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: namespaces,
	}}}
}

func rules(operation admissionregistrationv1.OperationType, group, resource string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{operation},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}}
}

// create stores the objects of the world that are not nil.
func (w *world) create(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	must(t, second(w.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})))
	if w.service != nil {
		created, err := w.client.CoreV1().Services(w.namespace).Create(ctx, w.service, metav1.CreateOptions{})
		must(t, err)
		w.service = created
		if address := net.JoinHostPort(created.Spec.ClusterIP, "443"); len(w.servers) > 0 && created.Spec.ClusterIP != corev1.ClusterIPNone {
			w.route(t, address, w.servers[0].address) // in place of kube-proxy
		}
	}
	for _, pod := range w.pods {
		status := pod.Status
		created, err := w.client.CoreV1().Pods(w.namespace).Create(ctx, pod, metav1.CreateOptions{})
		must(t, err)
		created.Status = status
		must(t, second(w.client.CoreV1().Pods(w.namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{})))
	}
	if w.slice != nil {
		must(t, second(w.client.DiscoveryV1().EndpointSlices(w.namespace).Create(ctx, w.slice, metav1.CreateOptions{})))
	}
	if w.slice != nil && len(w.slice.Endpoints) > 0 {
		w.createEndpoints(t, "hook")
	}
	if w.deployment != nil {
		must(t, second(w.client.AppsV1().Deployments(w.namespace).Create(ctx, w.deployment, metav1.CreateOptions{})))
	}
	if w.budget != nil {
		must(t, second(w.client.PolicyV1().PodDisruptionBudgets(w.namespace).Create(ctx, w.budget, metav1.CreateOptions{})))
	}
	if w.validating != nil {
		created, err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, w.validating, metav1.CreateOptions{})
		must(t, err)
		w.validating = created
		t.Cleanup(func() {
			must(t, w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.WithoutCancel(t.Context()), w.validating.Name, metav1.DeleteOptions{}))
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

// found returns the checks and subjects of the findings, sorted.
func found(r *Report) []string {
	all := []string{}
	for _, f := range r.Findings {
		all = append(all, f.Check+" "+f.Subject)
	}
	slices.Sort(all)
	return all
}
