// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/doctor"
)

// A Gap is a request or connection that failed, so that checks lack its facts.
type Gap struct {
	// Verb and Resource are the missing permission, such as "list" and "deployments.apps", if Forbidden is true.
	// Otherwise they are what was tried.
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Namespaces is empty for cluster-scoped objects and for all namespaces.
	Namespaces []string `json:"namespaces,omitempty"`
	Forbidden  bool     `json:"forbidden"`
	Error      string   `json:"error"`
}

// A reader reads a snapshot of a cluster.
type reader struct {
	config *rest.Config
	client dynamic.Interface
	s      *doctor.Snapshot
	gaps   []Gap
	// unprobed has the webhooks that no dry run reached.
	unprobed []NotProbed
	step     func(format string, args ...any)
	// direct means that Pods are connected to directly, and not through a kubelet.
	direct bool
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	// timeout is the limit for each connection and each request to a webhook.
	timeout time.Duration
	// probing makes doctor send dry runs. webhooks has the rules and selectors of each target for that.
	probing  bool
	webhooks map[*doctor.Target]*admissionregistrationv1.ValidatingWebhook
	// watchFor is the time between two scrapes, or 0 for a single one.
	watchFor time.Duration
}

func newReader(config *rest.Config, client dynamic.Interface, step func(format string, args ...any)) *reader {
	return &reader{config: config, client: client, step: step, webhooks: map[*doctor.Target]*admissionregistrationv1.ValidatingWebhook{}, dial: (&net.Dialer{}).DialContext, timeout: 5 * time.Second, s: &doctor.Snapshot{
		Namespaces: map[string]*corev1.Namespace{}, Services: map[types.NamespacedName]*corev1.Service{},
		Slices: map[types.NamespacedName][]discoveryv1.EndpointSlice{}, Pods: map[types.NamespacedName][]corev1.Pod{},
		Proxied: map[doctor.Backend]doctor.Proxied{}, Policies: map[string][]networkingv1.NetworkPolicy{},
		Failures: map[*doctor.Target][]string{}, Budgets: map[string][]policyv1.PodDisruptionBudget{}, Connections: map[doctor.Backend][]doctor.Connection{},
	}}
}

func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

// gap records that a request failed.
func (r *reader) gap(verb string, resource schema.GroupResource, namespace string, err error) {
	at := slices.IndexFunc(r.gaps, func(g Gap) bool {
		return g.Verb == verb && g.Resource == resource.String() && g.Forbidden == apierrors.IsForbidden(err)
	})
	if at < 0 {
		at = len(r.gaps)
		r.gaps = append(r.gaps, Gap{Verb: verb, Resource: resource.String(), Forbidden: apierrors.IsForbidden(err), Error: err.Error()})
	}
	if namespace != "" && !slices.Contains(r.gaps[at].Namespaces, namespace) {
		r.gaps[at].Namespaces = append(r.gaps[at].Namespaces, namespace)
	}
}

// maxObjects limits the number of objects of one list. A list in one namespace is far shorter.
const maxObjects = 20_000

var errTooMany = fmt.Errorf("there are more than %d objects", maxObjects)

// list reads objects in a namespace, or cluster-scoped objects if it is empty. It returns false if that fails.
func list[T any](ctx context.Context, r *reader, from schema.GroupVersionResource, namespace string, o metav1.ListOptions) (all []T, ok bool) {
	r.step("reading %s %s", from.Resource, namespace)
	var resource dynamic.ResourceInterface = r.client.Resource(from)
	if namespace != "" {
		resource = r.client.Resource(from).Namespace(namespace)
	}
	err := cluster.Pages(ctx, resource, o, func(page []unstructured.Unstructured) error {
		for i := range page {
			var one T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(page[i].Object, &one); err != nil {
				return err
			}
			all = append(all, one)
		}
		if len(all) > maxObjects {
			return errTooMany
		}
		return nil
	})
	switch {
	case apierrors.IsNotFound(err): // the cluster does not serve the resource
		return nil, true
	case err != nil:
		r.gap("list", from.GroupResource(), namespace, err)
		return nil, false
	}
	return all, true
}

// get reads one object. It returns nil and true if the object does not exist, and false if it cannot be read.
func get[T any](ctx context.Context, r *reader, from schema.GroupVersionResource, name types.NamespacedName) (*T, bool) {
	r.step("reading %s %s", from.Resource, strings.TrimPrefix(name.String(), "/"))
	var resource dynamic.ResourceInterface = r.client.Resource(from)
	if name.Namespace != "" {
		resource = r.client.Resource(from).Namespace(name.Namespace)
	}
	u, err := resource.Get(ctx, name.Name, metav1.GetOptions{})
	one := new(T)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, one)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, true
	case err != nil:
		r.gap("get", from.GroupResource(), name.Namespace, err)
		return nil, false
	}
	return one, true
}

// read reads all facts that the checks need. It records a gap for each that it cannot read.
func (r *reader) read(ctx context.Context) error {
	r.readWebhooks(ctx)
	r.readConversions(ctx)
	r.readAPIServices(ctx)
	var services []types.NamespacedName
	for _, t := range r.s.Targets {
		if t.Backend.IsService() && !t.Backend.IsAPIServer() && !slices.Contains(services, t.Backend.Service) {
			services = append(services, t.Backend.Service)
		}
	}
	r.readServices(ctx, services)
	r.connect(ctx)
	r.proxied(ctx)
	if r.probing {
		r.probe(ctx)
	}
	r.readTraffic(ctx)
	return ctx.Err()
}

// readServices reads the Services and their namespaces, endpoints, Pods, workloads and policies.
func (r *reader) readServices(ctx context.Context, services []types.NamespacedName) {
	if len(services) == 0 {
		return
	}
	for _, namespace := range append(namespacesOf(services), metav1.NamespaceSystem, corev1.NamespaceNodeLease, metav1.NamespaceDefault) {
		if found, ok := get[corev1.Namespace](ctx, r, resource("", "v1", "namespaces"), types.NamespacedName{Name: namespace}); ok {
			r.s.Namespaces[namespace] = found
		}
	}
	for _, name := range services {
		service, ok := get[corev1.Service](ctx, r, resource("", "v1", "services"), name)
		if !ok {
			continue
		}
		r.s.Services[name] = service
		if service == nil || service.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		of := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name.Name}
		if found, ok := list[discoveryv1.EndpointSlice](ctx, r, resource("discovery.k8s.io", "v1", "endpointslices"), name.Namespace, of); ok {
			r.s.Slices[name] = found
		}
		if len(service.Spec.Selector) == 0 {
			continue
		}
		behind := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String()}
		if found, ok := list[corev1.Pod](ctx, r, resource("", "v1", "pods"), name.Namespace, behind); ok {
			r.s.Pods[name] = found
		}
	}
	r.s.SeveralNodes = r.severalNodes(ctx)
	for _, namespace := range namespacesOf(services) {
		if found, ok := list[policyv1.PodDisruptionBudget](ctx, r, resource("policy", "v1", "poddisruptionbudgets"), namespace, metav1.ListOptions{}); ok {
			r.s.Budgets[namespace] = found
		}
		if found, ok := list[networkingv1.NetworkPolicy](ctx, r, resource("networking.k8s.io", "v1", "networkpolicies"), namespace, metav1.ListOptions{}); ok {
			r.s.Policies[namespace] = found
		}
		addWorkloads[appsv1.Deployment](ctx, r, resource("apps", "v1", "deployments"), namespace)
		addWorkloads[appsv1.StatefulSet](ctx, r, resource("apps", "v1", "statefulsets"), namespace)
		addWorkloads[appsv1.DaemonSet](ctx, r, resource("apps", "v1", "daemonsets"), namespace)
		addWorkloads[autoscalingv2.HorizontalPodAutoscaler](ctx, r, resource("autoscaling", "v2", "horizontalpodautoscalers"), namespace)
	}
}

// severalNodes reports whether the cluster is known to have more than one node. It reads at most two.
func (r *reader) severalNodes(ctx context.Context) bool {
	nodes := resource("", "v1", "nodes")
	found, err := r.client.Resource(nodes).List(ctx, metav1.ListOptions{Limit: 2})
	if err != nil {
		r.gap("list", nodes.GroupResource(), "", err)
		return false
	}
	return len(found.Items) > 1
}

func addWorkloads[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, r *reader, from schema.GroupVersionResource, namespace string) {
	found, _ := list[T](ctx, r, from, namespace, metav1.ListOptions{})
	for i := range found {
		r.s.Workloads = append(r.s.Workloads, P(&found[i]))
	}
}

func namespacesOf(services []types.NamespacedName) (all []string) {
	for _, name := range services {
		if !slices.Contains(all, name.Namespace) {
			all = append(all, name.Namespace)
		}
	}
	return all
}
