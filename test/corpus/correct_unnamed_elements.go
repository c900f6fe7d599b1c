// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

// C73 to C82: correct webhooks for lists whose elements have no names. They add an element, or set one value in each.

func correctUnnamedElements() []Case {
	return []Case{
		onPods("C73 raises the lifetime of tokens", longTokens).samples(podWithToken()),
		onKind("C74 Ingress: adds a challenge path to each rule", "networking.k8s.io/v1", "ingresses", challengePath).samples(sampleIngress()),
		onKind("C75 NetworkPolicy: allows the resolver in each rule", "networking.k8s.io/v1", "networkpolicies", resolverAllowed).samples(sampleNetworkPolicy()),
		kindCase("C76 custom resource: defaults the timeout of elements without names", "net.example.com/v1alpha1", "frontends", mapped(hostTimeouts)).
			samples(sampleFrontend()),
		kindCase("C77 custom resource: typed elements without names", "net.example.com/v1alpha1", "frontends", typed(hostClasses)).
			samples(sampleFrontend()),
		onKind("C78 Role: adds watch where list is allowed", "rbac.authorization.k8s.io/v1", "roles", mayWatch).samples(sampleRole()),
		onPods("C79 sets the size limit of scratch volumes", scratchLimit).samples(podWithScratch()),
		onKind("C80 HorizontalPodAutoscaler: no more than 80 percent", "autoscaling/v2", "horizontalpodautoscalers", atMostEighty).
			samples(sampleAutoscaler()),
		onPods("C81 called for deletions, too", tokenMounted).on(create, admissionregistrationv1.Delete),
		podCase("C82 behind a mux, with a health check", servedByMux),
	}
}

func podWithToken() *corev1.Pod {
	p := simplePod(nil)
	p.Spec.Volumes = []corev1.Volume{projectedToken("vault", "vault")}
	p.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds = ptr.To[int64](600)
	return p
}

// longTokens raises the lifetime of each projected token below two hours.
var longTokens = changes(func(p *corev1.Pod) {
	for _, v := range p.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil && ptr.Deref(s.ServiceAccountToken.ExpirationSeconds, 0) < 7200 {
				s.ServiceAccountToken.ExpirationSeconds = ptr.To[int64](7200)
			}
		}
	}
})

// challengePath appends a path to each rule that lacks it.
var challengePath = changes(func(i *networkingv1.Ingress) {
	const path = "/.well-known/acme-challenge/"
	for _, rule := range i.Spec.Rules {
		if rule.HTTP == nil || slices.ContainsFunc(rule.HTTP.Paths, func(p networkingv1.HTTPIngressPath) bool { return p.Path == path }) {
			continue
		}
		rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{
			Path: path, PathType: ptr.To(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "acme-solver", Port: networkingv1.ServiceBackendPort{Number: 8089}},
			},
		})
	}
})

// resolverAllowed adds the address of the resolver to each egress rule that names destinations.
var resolverAllowed = changes(func(n *networkingv1.NetworkPolicy) {
	const resolver = "198.51.100.53/32"
	for i := range n.Spec.Egress {
		to := &n.Spec.Egress[i].To
		if len(*to) > 0 && !slices.ContainsFunc(*to, func(p networkingv1.NetworkPolicyPeer) bool { return p.IPBlock != nil && p.IPBlock.CIDR == resolver }) {
			*to = append(*to, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: resolver}})
		}
	}
})

func sampleFrontend() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: tree{
		"apiVersion": "net.example.com/v1alpha1", "kind": "Frontend", "metadata": tree{"name": "shop", "namespace": "default"},
		"spec": tree{"hosts": []any{
			tree{"fqdn": "shop.example.com", "paths": []any{"/", "/cart"}, "retries": int64(2)},
			tree{"fqdn": "api.example.com", "paths": []any{"/v1"}, "tls": tree{"secret": "api"}},
		}},
	}}
}

// hostTimeouts sets the timeout of each host that lacks one.
var hostTimeouts = changes(func(doc tree) {
	for _, host := range objectsAt(doc, "spec", "hosts") {
		if _, ok := host["timeout"]; !ok {
			host["timeout"] = "15s"
		}
	}
})

// The type frontend has only the fields that the webhook needs.
type frontend struct {
	Spec struct {
		Hosts []struct {
			FQDN  string  `json:"fqdn"`
			Class *string `json:"class,omitempty"`
		} `json:"hosts,omitempty"`
	} `json:"spec"`
}

// hostClasses sets the class of each host that lacks one, through a type that lacks the other fields.
var hostClasses = changes(func(f *frontend) {
	for i := range f.Spec.Hosts {
		if h := &f.Spec.Hosts[i]; h.Class == nil {
			h.Class = ptr.To("public")
		}
	}
})

func sampleRole() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta: typeOf("rbac.authorization.k8s.io/v1", "Role"), ObjectMeta: metaOf("reader"),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"shop"}, Verbs: []string{"get"}},
		},
	}
}

// mayWatch adds the verb watch to each rule that permits list.
var mayWatch = changes(func(r *rbacv1.Role) {
	for i := range r.Rules {
		if verbs := &r.Rules[i].Verbs; slices.Contains(*verbs, "list") && !slices.Contains(*verbs, "watch") {
			*verbs = append(*verbs, "watch")
		}
	}
})

func podWithScratch() *corev1.Pod {
	p := simplePod(nil)
	p.Spec.Volumes = []corev1.Volume{emptyDir("scratch")}
	return p
}

// scratchLimit sets a size limit for each emptyDir volume that lacks one.
var scratchLimit = changes(func(p *corev1.Pod) {
	for i := range p.Spec.Volumes {
		if dir := p.Spec.Volumes[i].EmptyDir; dir != nil && dir.SizeLimit == nil {
			dir.SizeLimit = ptr.To(resource.MustParse("1Gi"))
		}
	}
})

// atMostEighty lowers each target utilization above 80 percent.
var atMostEighty = changes(func(h *autoscalingv2.HorizontalPodAutoscaler) {
	for _, m := range h.Spec.Metrics {
		if m.Resource != nil && ptr.Deref(m.Resource.Target.AverageUtilization, 0) > 80 {
			m.Resource.Target.AverageUtilization = ptr.To[int32](80)
		}
	}
	setKey(&h.Annotations, "example.com/utilization", "limited")
})

// servedByMux serves the webhook and a health check on one mux.
func servedByMux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("POST /", pods(tokenMounted))
	return mux
}
