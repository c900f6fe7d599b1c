// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// A Snapshot has the known state of a cluster.
//
// In the maps, a missing key means that the value is unknown. A nil value means that the object does not exist, or that
// there are none.
type Snapshot struct {
	Now time.Time
	// ExpiresWithin is the remaining lifetime below which a certificate is reported.
	ExpiresWithin time.Duration
	// Kubernetes is the version of the API server, or "".
	Kubernetes string
	// Configurations are the webhook configurations, and Targets is everything that the API server calls.
	Configurations []runtime.Object
	Targets        []*Target

	Namespaces map[string]*corev1.Namespace
	Services   map[types.NamespacedName]*corev1.Service
	// Slices and Pods have the EndpointSlices and the Pods of each Service.
	Slices map[types.NamespacedName][]discoveryv1.EndpointSlice
	Pods   map[types.NamespacedName][]corev1.Pod
	// Connections has the connections to the servers of each Backend that could be tried.
	Connections map[Backend][]Connection
	// Proxied has the result of a GET through the API server's proxy for each Service.
	Proxied map[Backend]Proxied
	// Workloads are the Deployments, StatefulSets, DaemonSets and HorizontalPodAutoscalers in the namespaces of the
	// Services.
	Workloads []runtime.Object
	// Budgets and Policies have the PodDisruptionBudgets and NetworkPolicies of each namespace.
	Budgets  map[string][]policyv1.PodDisruptionBudget
	Policies map[string][]networkingv1.NetworkPolicy
	// Traffic is nil if no API server's metrics could be read.
	Traffic *Traffic
	// Fights are from audit logs.
	Fights []Fight
	// Failures has the messages of the API server for the dry runs that failed, by target.
	Failures map[*Target][]string
	// SeveralNodes reports whether the cluster is known to have more than one node.
	SeveralNodes bool
}

// These are the kinds of objects that register a Target.
const (
	Mutating   = "MutatingWebhookConfiguration"
	Validating = "ValidatingWebhookConfiguration"
	Conversion = "CustomResourceDefinition"
	Aggregated = "APIService"
)

// A Target is a server that the API server calls: a webhook, a conversion webhook or an aggregated API server.
type Target struct {
	// Kind and Name are those of the object that registers the target.
	Kind, Name string
	// Webhook is the name of the webhook, and Index its index in the configuration.
	Webhook string
	Index   int
	Backend Backend
	Path    string
	// Bundle is the caBundle.
	Bundle []byte
	// Unverified means that the API server does not verify the certificate.
	Unverified bool
	// Fails means that requests fail if the call fails.
	Fails   bool
	Timeout time.Duration
	// Unavailable is the reason why the API server does not use an aggregated API server, or "".
	Unavailable string
}

// Object returns the kind and name of the object that registers the target.
func (t *Target) Object() string { return t.Kind + "/" + t.Name }

func (t *Target) caller() Caller {
	policy := "Ignore"
	if t.Fails {
		policy = "Fail"
	}
	return Caller{Object: t.Object(), Webhook: t.Webhook, FailurePolicy: policy}
}

// A Backend is an address that the API server calls: a Service and its port, or else a URL without its path.
type Backend struct {
	Service types.NamespacedName
	Port    int32
	URL     string
}

// IsService reports whether the backend is a Service.
func (b Backend) IsService() bool { return b.URL == "" }

// IsAPIServer reports whether the backend is the API server itself, which it calls over loopback.
func (b Backend) IsAPIServer() bool {
	return b.Service == types.NamespacedName{Namespace: "default", Name: "kubernetes"} && b.Port == 443 ||
		b.URL == "https://kubernetes.default.svc" || b.URL == "https://kubernetes.default.svc:443"
}

// Host returns the name that the serving certificate must have.
func (b Backend) Host() string {
	if b.IsService() {
		return b.Service.Name + "." + b.Service.Namespace + ".svc"
	}
	u, err := url.Parse(b.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func (b Backend) String() string {
	if b.IsService() {
		return "Service " + b.Service.String()
	}
	return b.URL
}

// backends returns the addresses of all targets in order, and the targets of each.
func (s *Snapshot) backends() ([]Backend, map[Backend][]*Target) {
	var order []Backend
	of := map[Backend][]*Target{}
	for _, t := range s.Targets {
		if of[t.Backend] == nil {
			order = append(order, t.Backend)
		}
		of[t.Backend] = append(of[t.Backend], t)
	}
	return order, of
}

// A Fight is two webhooks that undo each other's changes.
type Fight struct {
	Webhooks []Caller
	Evidence string
}

// namespaceFlag returns the flag of kubectl for a namespace.
func namespaceFlag(namespace string) string { return fmt.Sprintf("-n %s", namespace) }
