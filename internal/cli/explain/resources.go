// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/internal/problem"
)

// A resource is the API resource of a request.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
	// unsure means that it is unknown which other versions the API server serves.
	unsure bool
	// definition is the definition of a custom resource, or nil.
	definition *apiextensionsv1.CustomResourceDefinition
}

// A subresource is a built-in subresource with its only operation.
type subresource struct {
	operation string
	// kind is the kind that clients send, or empty for the object itself.
	kind schema.GroupVersionKind
	// of is the resource that has the subresource, or empty if several resources have it.
	of string
}

var (
	coreV1        = schema.GroupVersion{Version: "v1"}
	scaleKind     = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	proxyOf       = map[string]string{"pods": "PodProxyOptions", "services": "ServiceProxyOptions", "nodes": "NodeProxyOptions"}
	scalable      = " deployments replicasets statefulsets replicationcontrollers "
	subresourceOf = map[string]subresource{
		"status":              {operation: "UPDATE"},
		"scale":               {operation: "UPDATE", kind: scaleKind},
		"ephemeralcontainers": {operation: "UPDATE", of: "pods"},
		"resize":              {operation: "UPDATE", of: "pods"},
		"approval":            {operation: "UPDATE", of: "certificatesigningrequests"},
		"finalize":            {operation: "UPDATE", of: "namespaces"},
		"eviction":            {operation: "CREATE", of: "pods", kind: schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}},
		"binding":             {operation: "CREATE", of: "pods", kind: coreV1.WithKind("Binding")},
		"token":               {operation: "CREATE", of: "serviceaccounts", kind: schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"}},
		"exec":                {operation: "CONNECT", of: "pods", kind: coreV1.WithKind("PodExecOptions")},
		"attach":              {operation: "CONNECT", of: "pods", kind: coreV1.WithKind("PodAttachOptions")},
		"portforward":         {operation: "CONNECT", of: "pods", kind: coreV1.WithKind("PodPortForwardOptions")},
		"proxy":               {operation: "CONNECT"},
	}
)

// sentTo returns the subresource to which clients send a kind such as PodExecOptions.
func sentTo(kind schema.GroupVersionKind) (of, name string) {
	for of, options := range proxyOf {
		if kind == coreV1.WithKind(options) {
			return of, "proxy"
		}
	}
	for name, s := range subresourceOf {
		if s.kind == kind && kind.Kind != "" {
			return s.of, name
		}
	}
	return "", ""
}

// subresource returns a subresource of the resource.
func (r resource) subresource(name string) (subresource, error) {
	s, known := subresourceOf[name]
	switch {
	case !known:
	case name == "proxy":
		s.kind = coreV1.WithKind(proxyOf[r.Resource])
		known = proxyOf[r.Resource] != "" && r.Group == ""
	case s.of != "":
		known = s.of == r.Resource
	case r.definition != nil:
		known = hasSubresource(r.definition, r.Version, name)
	case name == "scale":
		known = strings.Contains(scalable, " "+r.Resource+" ") || !builtInGroup(r.Group)
	}
	if !known {
		return s, noSubresource{problem.New("%s have no subresource %q", r.GroupResource(), name)}
	}
	return s, nil
}

// noSubresource is the error for an object whose resource lacks the subresource.
type noSubresource struct{ error }

func (e noSubresource) Unwrap() error { return e.error }

func hasSubresource(d *apiextensionsv1.CustomResourceDefinition, version, name string) bool {
	for _, v := range d.Spec.Versions {
		if v.Name == version && v.Subresources != nil {
			return name == "status" && v.Subresources.Status != nil || name == "scale" && v.Subresources.Scale != nil
		}
	}
	return false
}

func builtInGroup(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == apiextensionsv1.GroupName
}

// resourceOf finds the resource of a kind.
func (w *Facts) resourceOf(kind schema.GroupVersionKind) (resource, error) {
	if d := w.definition(func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == kind.Group && d.Spec.Names.Kind == kind.Kind
	}); d != nil {
		return customResource(d, kind)
	}
	if w.resources != nil {
		gvr, namespaced, err := w.resources(kind)
		// Extension API servers serve kinds without a definition.
		return resource{GroupVersionResource: gvr, namespaced: namespaced, unsure: !isBuiltIn(kind) || !servedByDefault(kind)}, err
	}
	if isBuiltIn(kind) {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		return resource{GroupVersionResource: plural, namespaced: !k8svalidation.ClusterScoped(plural.GroupResource()), unsure: !servedByDefault(kind)}, nil
	}
	if builtInGroup(kind.Group) {
		return resource{}, problem.New("%[2]s has no kind %[1]s", kind.Kind, kind.GroupVersion()).Hint("kubectl api-resources")
	}
	return resource{}, problem.New("the resource of %s %s is unknown: give its CustomResourceDefinition", kind.GroupVersion(), kind.Kind).
		Hint("kubectl get crd -o yaml > crds.yaml, and -f crds.yaml").Hint("--resource PLURAL.%s.%s", kind.Version, kind.Group)
}

func customResource(d *apiextensionsv1.CustomResourceDefinition, kind schema.GroupVersionKind) (resource, error) {
	for _, v := range d.Spec.Versions {
		if v.Name == kind.Version && v.Served {
			return resource{GroupVersionResource: kind.GroupVersion().WithResource(d.Spec.Names.Plural),
				namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped, definition: d}, nil
		}
	}
	return resource{}, problem.New("version %s of %s is not served", kind.Version, d.Name)
}

// resourceNamed returns the resource that the user names with --resource, as RESOURCE.VERSION.GROUP.
func (w *Facts) resourceNamed(text string, inNamespace bool) (resource, error) {
	gvr, _ := schema.ParseResourceArg(text)
	if gvr == nil {
		return resource{}, problem.New("--resource %s: want RESOURCE.VERSION.GROUP", text).Hint("--resource pods.v1.").Hint("--resource deployments.v1.apps")
	}
	if d := w.definition(func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == gvr.Group && d.Spec.Names.Plural == gvr.Resource
	}); d != nil {
		return customResource(d, gvr.GroupVersion().WithKind(d.Spec.Names.Kind))
	}
	r := resource{GroupVersionResource: *gvr}
	if builtInGroup(gvr.Group) {
		r.namespaced = !k8svalidation.ClusterScoped(gvr.GroupResource())
		r.unsure = gvr.Version != "v1" && gvr.GroupVersion().String() != "autoscaling/v2"
		return r, nil
	}
	if !inNamespace {
		return r, problem.New("it is unknown whether %s are namespaced", gvr.GroupResource()).Hint("--namespace NAME, if they are namespaced").
			Hint("-f with their CustomResourceDefinition")
	}
	r.namespaced, r.unsure = true, true
	return r, nil
}

// isBuiltIn reports whether a kind is built in and has a resource.
func isBuiltIn(kind schema.GroupVersionKind) bool {
	if kind.Group == apiextensionsv1.GroupName {
		return kind.Kind == "CustomResourceDefinition"
	}
	object, err := scheme.Scheme.New(kind)
	if err != nil {
		return false
	}
	_, err = meta.Accessor(object)
	return err == nil
}

// servedByDefault reports whether API servers serve a version of a built-in kind by default. They do not serve beta
// versions by default.
func servedByDefault(kind schema.GroupVersionKind) bool {
	return kind.Version == "v1" || kind.GroupVersion().String() == "autoscaling/v2"
}
