// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const hardenedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: portal
  namespace: web
  annotations: {hardening.acme.io/profile: baseline}
spec:
  replicas: 1
  selector: {matchLabels: {app: portal}}
  template:
    metadata: {labels: {app: portal}}
    spec:
      containers:
      - name: portal
        image: registry.acme.io/web/portal:6
`

type hardenBroken struct{}

func (*hardenBroken) Default(_ context.Context, d *appsv1.Deployment) error {
	profile := d.Annotations["hardening.acme.io/profile"]
	spec := &d.Spec.Template.Spec
	if profile == "" || spec.OS != nil && spec.OS.Name == corev1.Windows {
		return nil
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.SecurityContext.SeccompProfile == nil {
		spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		if profile == "strict" && c.SecurityContext.ReadOnlyRootFilesystem == nil {
			yes := true
			c.SecurityContext.ReadOnlyRootFilesystem = &yes
		}
	}
	return nil
}

type hardenCorrect struct{}

func (*hardenCorrect) Default(_ context.Context, d *appsv1.Deployment) error {
	spec := &d.Spec.Template.Spec
	if d.Annotations["hardening.acme.io/profile"] == "" || spec.OS != nil && spec.OS.Name == corev1.Windows {
		return nil
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.SecurityContext.SeccompProfile == nil {
		spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	if spec.AutomountServiceAccountToken == nil {
		no := false // false is not the default here
		spec.AutomountServiceAccountToken = &no
	}
	return nil
}

func hardenProof(p *prover) string {
	// Another webhook sets a security context in containers that have none.
	other := func(d map[string]any) map[string]any {
		d = copyOf(d)
		for _, c := range objects(nested(d, "spec", "template", "spec")["containers"]) {
			if _, ok := c["securityContext"]; !ok {
				c["securityContext"] = map[string]any{"runAsNonRoot": true}
			}
		}
		return d
	}
	context := func(d map[string]any) string {
		return fmt.Sprint(objects(nested(d, "spec", "template", "spec")["containers"])[0]["securityContext"])
	}
	d := p.object(hardenedDeployment)
	after, before := context(other(p.created(d))), context(p.created(other(d)))
	if after != before {
		return fmt.Sprintf("with the other webhook after this one: %s; before it: %s", after, before)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z08b1-empty-security-context",
		Summary: "Containers get an empty securityContext also if the profile sets nothing in it.",
		Why: "CREATE with profile baseline adds securityContext: {} to each container. Another webhook sets runAsNonRoot: true in containers without a securityContext: called after this one, " +
			"it finds one and does nothing, and the containers run as root. Called before it, they do not.",
		Webhook: register("hardening.acme.io", "apps", "v1", "deployments", create, update),
		New:     func() http.Handler { return admission.WithDefaulter(clientgoscheme.Scheme, &hardenBroken{}) },
		Samples: []string{hardenedDeployment},
		Proof:   hardenProof,
	})
	_ = add(hookCase{
		Name:    "Z08c1-security-context-with-content",
		Summary: "The webhook adds a struct only if it sets a field in it. The value false is set on purpose.",
		Why: "The pod's security context is always there after the API server's defaults, and gets a profile if it has none. automountServiceAccountToken: false is no zero value, as absent means true. " +
			"Windows Pods, where seccomp is forbidden, are left alone.",
		Webhook: register("hardening.acme.io", "apps", "v1", "deployments", create, update),
		New:     func() http.Handler { return admission.WithDefaulter(clientgoscheme.Scheme, &hardenCorrect{}) },
		Samples: []string{hardenedDeployment},
		Proof:   hardenProof,
	})
)

const (
	cacheCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.data.acme.io}
spec:
  group: data.acme.io
  scope: Namespaced
  names: {plural: caches, singular: cache, kind: Cache, listKind: CacheList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [memory]
            properties:
              memory: {type: string, minLength: 1}
              version: {type: string}
              owner: {type: string}
              weight: {type: integer, minimum: 0, maximum: 100}
              zone: {type: string}
`
	cacheSample = `
apiVersion: data.acme.io/v1
kind: Cache
metadata: {name: sessions, namespace: shop}
spec:
  memory: 2Gi
`
)

var cacheVersion = schema.GroupVersion{Group: "data.acme.io", Version: "v1"}

type Cache struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CacheSpec `json:"spec"`
}

type CacheSpec struct {
	Memory  string `json:"memory"`
	Version string `json:"version"`
	Owner   string `json:"owner"`
	Weight  int32  `json:"weight"`
}

func (c *Cache) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

type cacheDefaults struct{}

func (*cacheDefaults) Default(_ context.Context, c *Cache) error {
	if c.Spec.Version == "" {
		c.Spec.Version = "8.1"
	}
	return nil
}

// A SparseCache is the same resource, with optional fields.
type SparseCache struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              SparseCacheSpec `json:"spec"`
}

type SparseCacheSpec struct {
	Memory  string  `json:"memory"`
	Version *string `json:"version,omitempty"`
	Owner   *string `json:"owner,omitempty"`
	Weight  *int32  `json:"weight,omitempty"`
	// This version of the webhook does not know the zone.
}

func (c *SparseCache) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out // nothing writes through the pointers
}

type sparseCacheDefaults struct{}

func (*sparseCacheDefaults) Default(_ context.Context, c *SparseCache) error {
	if c.Spec.Version == nil {
		version := "8.1"
		c.Spec.Version = &version
	}
	return nil
}

func cacheScheme(object runtime.Object) *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(cacheVersion.WithKind("Cache"), object)
	metav1.AddToGroupVersion(scheme, cacheVersion)
	return scheme
}

var cacheSchemeBroken, cacheSchemeCorrect = cacheScheme(&Cache{}), cacheScheme(&SparseCache{})

func cacheProof(p *prover) string {
	spec := nested(p.created(p.object(cacheSample)), "spec")
	var extra []string
	for key, value := range spec {
		if key != "memory" && key != "version" {
			extra = append(extra, fmt.Sprintf("%s=%#v", key, value))
		}
	}
	slices.Sort(extra)
	if len(extra) > 0 {
		return fmt.Sprintf("the webhook adds %v, so a webhook that sets an absent owner or weight does nothing", extra)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z08b2-cache-without-omitempty",
		Summary: "The Go type has no omitempty, so the patch adds owner: \"\" and weight: 0.",
		Why: "CREATE of a Cache without version: beside version=8.1 the patch adds owner=\"\" and weight=0. A webhook that sets owner to the team of the namespace where it is absent, called after this one, " +
			"finds it and does nothing; called before this one, it sets it. A Cache with a version gets none of these fields.",
		Webhook: register("defaults.data.acme.io", "data.acme.io", "v1", "caches", create, update),
		New:     func() http.Handler { return admission.WithDefaulter(cacheSchemeBroken, &cacheDefaults{}) },
		Samples: []string{cacheSample},
		CRDs:    []string{cacheCRD},
		Proof:   cacheProof,
	})
	_ = add(hookCase{
		Name:    "Z08c2-cache-pointers",
		Summary: "The Go type has pointers with omitempty and lacks a field of the definition.",
		Why: "The type distinguishes absent fields from zero values, so the patch sets only the version. The zone, which the Go type does not know, stays: WithDefaulter drops removals that come from the type. " +
			"A version that is set, also to \"\", is kept.",
		Webhook: register("defaults.data.acme.io", "data.acme.io", "v1", "caches", create, update),
		New:     func() http.Handler { return admission.WithDefaulter(cacheSchemeCorrect, &sparseCacheDefaults{}) },
		Samples: []string{cacheSample},
		CRDs:    []string{cacheCRD},
		Proof:   cacheProof,
	})
)
