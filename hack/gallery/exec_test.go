// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/denyescalatingexec"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// execController returns a controller for DenyEscalatingExec, without the original, which Kubernetes no longer has.
func execController() *controller {
	return &controller{name: "DenyEscalatingExec", generate: (*generator).execRequest, clusters: execPods(), hooks: func(t *testing.T, in cluster, _ string) []*webhook.Hook {
		pods, err := reads.New(reads.Options[*corev1.Pod]{
			Resource: "pods",
			Cached: func(_, name string) (*corev1.Pod, error) {
				return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
			},
			Live: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
				return in.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return []*webhook.Hook{denyescalatingexec.Hook(pods)}
	}}
}

// execPods returns a cluster with a Pod for each escalation, and one without any. The names are numbers.
func execPods() [][]runtime.Object {
	var pods []runtime.Object
	for i, e := range append(escalations(), escalation{give: func(*corev1.PodSpec) {}}) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), Namespace: "plain"}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "a"}}
		e.give(&pod.Spec)
		pods = append(pods, pod)
	}
	return [][]runtime.Object{pods}
}

// execRequest returns a CONNECT for one of these Pods.
func (g *generator) execRequest() *request {
	pod := pick(g, execPods()[0]...).(*corev1.Pod)
	r := g.other(pod, "pods", "exec", "PodExecOptions", &corev1.PodExecOptions{Command: []string{"sh"}, Container: "app", Stdout: true})
	r.operation = admission.Connect
	return r
}

// An escalation is a way in which a Pod can have power over its node.
type escalation struct {
	name, denial string // in the order in which the original looked for them
	give         func(spec *corev1.PodSpec)
}

func escalations() []escalation {
	privileged := &corev1.SecurityContext{Privileged: ptr.To(true)}
	return []escalation{
		{"network", "cannot exec into or attach to a container using host network", func(s *corev1.PodSpec) { s.HostNetwork = true }},
		{"pid", "cannot exec into or attach to a container using host pid", func(s *corev1.PodSpec) { s.HostPID = true }},
		{"ipc", "cannot exec into or attach to a container using host ipc", func(s *corev1.PodSpec) { s.HostIPC = true }},
		{"init", "cannot exec into or attach to a privileged container", func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "init", Image: "a", SecurityContext: privileged}}
		}},
		{"container", "cannot exec into or attach to a privileged container", func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{Name: "second", Image: "a", SecurityContext: privileged})
		}},
		{"ephemeral", "cannot exec into or attach to a privileged container", func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "a", SecurityContext: privileged}}}
		}},
	}
}

// TestExecOnTheServer sends CONNECT requests for Pods with every combination of the escalations. The expected answers
// are those of the original in Kubernetes v1.20. An admitted request fails later, because the Pods have no node.
func TestExecOnTheServer(t *testing.T) {
	need.APIServer(t)
	s := startServer(t, controllers())
	c := execController()
	list := escalations()
	var equal, total int
	check := func(namespace, name, denial string) {
		t.Helper()
		for _, subresource := range []string{"exec", "attach", "portforward"} {
			total++
			want, code := denial, http.StatusForbidden
			if denial == "" || subresource == "portforward" {
				want, code = "does not have a host assigned", http.StatusBadRequest
			}
			got := statusOf(s.connect(t.Context(), namespace, name, subresource))
			if int(got.Code) != code || !strings.HasSuffix(got.Message, want) {
				t.Errorf("%s of %s/%s: got %d %s, want %d %s", subresource, namespace, name, got.Code, got.Message, code, want)
				continue
			}
			equal++
		}
	}
	namespaces := []string{"plain", metav1.NamespaceSystem}
	for set := range 1 << len(list) {
		for _, namespace := range namespaces {
			s.createPod(t, namespace, fmt.Sprintf("shop-%d", set), list, set)
		}
	}
	serve(t, c, s)
	for set := range 1 << len(list) {
		for _, namespace := range namespaces {
			check(namespace, fmt.Sprintf("shop-%d", set), denialOf(list, set))
		}
	}
	rowOf(c).onServers = fmt.Sprintf("%d/%d", equal, total)
	t.Logf("%s: %d/%d answers of the API server equal to those of the original", c.name, equal, total)

	got := statusOf(s.connect(t.Context(), "plain", "gone", "exec"))
	if want := `denied the request: pods "gone" is forbidden: pods "gone" not found`; got.Code != http.StatusForbidden || !strings.HasSuffix(got.Message, want) {
		t.Errorf("got %d %s, want %s", got.Code, got.Message, want)
	}
}

// denialOf returns the denial for a Pod with those escalations in the list whose bit is set in the argument set: that of
// the first one, or an empty string.
func denialOf(list []escalation, set int) string {
	for i, e := range list {
		if set&(1<<i) != 0 {
			return fmt.Sprintf(`admission webhook "denyescalatingexec.example.com" denied the request: pods "shop-%d" is forbidden: %s`, set, e.denial)
		}
	}
	return ""
}

// createPod creates a Pod with those escalations in the list whose bit is set in the argument set.
func (s *server) createPod(t *testing.T, namespace, name string, list []escalation, set int) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "a", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(false)}}}
	for i, e := range list {
		if set&(1<<i) != 0 {
			e.give(&pod.Spec)
		}
	}
	ephemeral := pod.Spec.EphemeralContainers
	pod.Spec.EphemeralContainers = nil
	pods := s.typed.CoreV1().Pods(namespace)
	created, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err == nil && ephemeral != nil {
		created.Spec.EphemeralContainers = ephemeral
		_, err = pods.UpdateEphemeralContainers(t.Context(), name, created, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// connect sends a CONNECT request for a Pod. It always returns an error, because no Pod runs.
func (s *server) connect(ctx context.Context, namespace, name, subresource string) error {
	options := map[string]runtime.Object{
		"exec": &corev1.PodExecOptions{Command: []string{"sh"}, Container: "app", Stdout: true}, "attach": &corev1.PodAttachOptions{Container: "app", Stdout: true},
		"portforward": &corev1.PodPortForwardOptions{Ports: []int32{80}},
	}
	return s.typed.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(name).SubResource(subresource).
		VersionedParams(options[subresource], scheme.ParameterCodec).Do(ctx).Error()
}
