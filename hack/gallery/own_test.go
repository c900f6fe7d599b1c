// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/loadbalancerservices"
	"github.com/admitkit/admitkit/examples/gallery/uniqueingresshosts"
	"github.com/admitkit/admitkit/examples/gallery/workloaddefaults"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// An ownPolicy is a policy of the gallery that has no original. The function run sends requests to an API server that
// calls the hooks, and reports each answer to steps.
type ownPolicy struct {
	*controller
	// prepare creates objects before the API server calls the hooks.
	prepare func(t *testing.T, s *server)
	run     func(t *testing.T, s *server, in cluster, steps *steps)
}

func ownPolicies() []*ownPolicy {
	return []*ownPolicy{{
		controller: &controller{name: "LoadBalancerServices", generate: (*generator).serviceRequest, hooks: func(*testing.T, cluster, string) []*webhook.Hook {
			return []*webhook.Hook{loadbalancerservices.Hook()}
		}},
		prepare: prepareLoadBalancers, run: runLoadBalancers,
	}, {
		controller: &controller{name: "UniqueIngressHosts", generate: (*generator).ingressRequest, clusters: ingressesWithHosts(), hooks: func(t *testing.T, in cluster, _ string) []*webhook.Hook {
			if err := in.ingresses().AddIndexers(uniqueingresshosts.Indexers()); err != nil {
				t.Fatal(err)
			}
			return []*webhook.Hook{uniqueingresshosts.Hook(in.ingresses().GetIndexer())}
		}},
		prepare: func(t *testing.T, s *server) {
			create(t, s, labelled("hosts-a", nil))
			create(t, s, labelled("hosts-b", nil))
		},
		run: runHosts,
	}, {
		controller: &controller{name: "WorkloadDefaults", generate: (*generator).templateRequest, hooks: func(t *testing.T, in cluster, _ string) []*webhook.Hook {
			config, err := workloaddefaults.Load("")
			if err != nil {
				t.Fatal(err)
			}
			return []*webhook.Hook{workloaddefaults.Hook(in.namespaces(t), config)}
		}, broken: limitedLater("spec.containers[*].resources", "spec.initContainers[*].resources")},
		prepare: func(t *testing.T, s *server) {
			create(t, s, labelled("defaults", map[string]string{workloaddefaults.OwnerLabel: "shop"}))
		},
		run: runDefaults,
	}}
}

// withoutOriginals returns the controllers that Kubernetes does not have, or no longer has.
func withoutOriginals() []*controller {
	list := append(injectors(), execController())
	for _, p := range ownPolicies() {
		list = append(list, p.controller)
	}
	return list
}

// ingressesWithHosts returns a cluster with two Ingresses, one of which has a host of the generated ones.
func ingressesWithHosts() [][]runtime.Object {
	var list []runtime.Object
	for _, host := range []string{"shop.example.com", "other.example.com"} {
		ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: host, Namespace: "plain"}}
		ingress.Spec.Rules = []networkingv1.IngressRule{{Host: host}}
		list = append(list, ingress)
	}
	return [][]runtime.Object{list}
}

// templateRequest returns a request for a Pod, or for a workload with the Pod as its template.
func (g *generator) templateRequest() *request {
	if g.oneIn(2) {
		return g.podRequest()
	}
	return g.workload(g.pod())
}

func (c cluster) ingresses() cache.SharedIndexInformer {
	return c.factory.Networking().V1().Ingresses().Informer()
}

// steps counts the answers of an API server, and those that are as expected.
type steps struct{ total, expected int }

// check checks that the API server has denied a request with a message that contains denial, or allowed it if denial is
// empty.
func (s *steps) check(t *testing.T, step string, err error, denial string) {
	t.Helper()
	s.that(t, step, err == nil && denial == "" || err != nil && denial != "" && strings.Contains(err.Error(), denial), "got %v, want a denial %q", err, denial)
}

// that checks a condition. If it is false, it reports the message.
func (s *steps) that(t *testing.T, step string, condition bool, message string, args ...any) {
	t.Helper()
	s.total++
	if condition {
		s.expected++
		return
	}
	t.Errorf(step+": "+message, args...)
}

func (s *steps) String() string { return fmt.Sprintf("%d/%d", s.expected, s.total) }

func TestOwnPoliciesOnTheServer(t *testing.T) {
	need.APIServer(t)
	s := startServer(t, controllers())
	for _, p := range ownPolicies() {
		t.Run(p.name, func(t *testing.T) {
			p.prepare(t, s)
			count := &steps{}
			p.run(t, s, serve(t, p.controller, s), count)
			rowOf(p.controller).onServers = count.String()
			t.Logf("%s: %s answers of an API server as expected", p.name, count)
		})
	}
}

func labelled(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func serviceOf(namespace, name string, of corev1.ServiceType) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Type: of, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func prepareLoadBalancers(t *testing.T, s *server) {
	create(t, s, labelled("balancers", map[string]string{loadbalancerservices.Label: "true"}))
	create(t, s, labelled("no-balancers", nil))
	create(t, s, serviceOf("no-balancers", "old", corev1.ServiceTypeLoadBalancer))
}

func runLoadBalancers(t *testing.T, s *server, _ cluster, steps *steps) {
	const denial = "the namespace no-balancers does not allow Services of type LoadBalancer"
	ctx := t.Context()
	added := func(namespace, name string, of corev1.ServiceType) error {
		_, err := s.typed.CoreV1().Services(namespace).Create(ctx, serviceOf(namespace, name, of), metav1.CreateOptions{})
		return err
	}
	changed := func(name string, change func(*corev1.Service)) error {
		in := s.typed.CoreV1().Services("no-balancers")
		service, err := in.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			change(service)
			_, err = in.Update(ctx, service, metav1.UpdateOptions{})
		}
		return err
	}
	typed := func(of corev1.ServiceType) func(*corev1.Service) { return func(s *corev1.Service) { s.Spec.Type = of } }
	steps.check(t, "create where it is allowed", added("balancers", "shop", corev1.ServiceTypeLoadBalancer), "")
	steps.check(t, "create in kube-system", added(metav1.NamespaceSystem, "shop", corev1.ServiceTypeLoadBalancer), "")
	steps.check(t, "create", added("no-balancers", "shop", corev1.ServiceTypeLoadBalancer), denial)
	steps.check(t, "create another type", added("no-balancers", "inner", corev1.ServiceTypeClusterIP), "")
	steps.check(t, "change the type", changed("inner", typed(corev1.ServiceTypeLoadBalancer)), denial)
	steps.check(t, "change a port", changed("inner", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }), "")
	steps.check(t, "change an old load balancer", changed("old", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }), "")
	steps.check(t, "delete an old load balancer", s.typed.CoreV1().Services("no-balancers").Delete(ctx, "old", metav1.DeleteOptions{}), "")
}

func runHosts(t *testing.T, s *server, in cluster, steps *steps) {
	const denial = "an Ingress in another namespace has the host a.example.com"
	ctx := t.Context()
	added := func(namespace, name, host string) error {
		ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		ingress.Spec.Rules = []networkingv1.IngressRule{{Host: host}}
		ingress.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "shop", Port: networkingv1.ServiceBackendPort{Number: 80}}}
		_, err := s.typed.NetworkingV1().Ingresses(namespace).Create(ctx, ingress, metav1.CreateOptions{})
		return err
	}
	changed := func(name, host string) error {
		patch := fmt.Appendf(nil, `{"spec":{"rules":[{"host":%q}]}}`, host)
		_, err := s.typed.NetworkingV1().Ingresses("hosts-b").Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{})
		return err
	}
	cached := func(n int) {
		waitFor(t, func() bool { return len(in.ingresses().GetIndexer().List()) == n })
	}
	steps.check(t, "the first Ingress", added("hosts-a", "first", "a.example.com"), "")
	cached(1)
	steps.check(t, "the host again in the namespace", added("hosts-a", "second", "a.example.com"), "")
	steps.check(t, "the host in another namespace", added("hosts-b", "third", "a.example.com"), denial)
	steps.check(t, "another host", added("hosts-b", "third", "b.example.com"), "")
	steps.check(t, "change to a host of another namespace", changed("third", "a.example.com"), denial)
	steps.check(t, "change to a new host", changed("third", "c.example.com"), "")
	for _, name := range []string{"first", "second"} {
		steps.check(t, "delete", s.typed.NetworkingV1().Ingresses("hosts-a").Delete(ctx, name, metav1.DeleteOptions{}), "")
	}
	cached(1)
	steps.check(t, "the host is free again", changed("third", "a.example.com"), "")
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// runDefaults creates a workload of each kind. The templates that the hook does not change must not have the label.
func runDefaults(t *testing.T, s *server, _ cluster, steps *steps) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "defaults"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "shop:v1"}}
	owned := pod.DeepCopy()
	owned.Name = "owned"
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop", UID: "a", Controller: ptr.To(true)}}
	completed := owned.DeepCopy()
	completed.Name, completed.Annotations = "completed", map[string]string{workloaddefaults.Annotation: "true"}
	all := append(workloadsOf(pod), onPods("CREATE", "", pod, nil), onPods("CREATE", "", owned, nil), onPods("CREATE", "", completed, nil))
	for _, r := range all {
		if rc, ok := r.object.(*corev1.ReplicationController); ok && rc.Spec.Template == nil {
			continue
		}
		send, err := s.prepare(t.Context(), r, "")
		if err != nil {
			t.Fatal(err)
		}
		stored, err := send(t.Context(), s)
		steps.check(t, "create "+r.kind.Kind, err, "")
		want := r.name != "completed" && !strings.HasPrefix(r.kind.Kind, "Replica")
		steps.check(t, "defaults of "+r.kind.Kind+" "+r.name, hasDefaults(stored, want), "")
	}
}

// hasDefaults returns an error unless the Pod template of an object has the defaults, or lacks them all.
func hasDefaults(object map[string]any, want bool) error {
	template := object
	for _, path := range [][]string{{"template"}, {"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		if part, ok, _ := unstructured.NestedMap(object, path...); ok {
			template = part
		}
	}
	owner, _, _ := unstructured.NestedString(template, "metadata", "labels", workloaddefaults.OwnerLabel)
	containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
	cpu, _, _ := unstructured.NestedString(containers[0].(map[string]any), "resources", "requests", "cpu")
	if want && owner == "shop" && cpu == "100m" || !want && owner == "" && cpu == "" {
		return nil
	}
	return fmt.Errorf("the owner is %q and the request %q", owner, cpu)
}
