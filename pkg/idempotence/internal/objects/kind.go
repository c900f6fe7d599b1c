// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"reflect"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/encode"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/internal/shape"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Kind is a kind of objects, with what is needed to default and validate them.
type Kind struct {
	schema.GroupVersionKind
	Resource metav1.GroupVersionResource
	// GoType is nil for custom resources, which the API server handles without a Go type.
	GoType reflect.Type
	// Custom is the definition of a custom resource, if there is one.
	Custom *definition
	// Namespaced is set if objects have a namespace. Namespace is for objects that do not name one.
	Namespaced bool
	Namespace  string
	// Old is the stored object of an update.
	Old    *Object
	Memory Memory
	// Server is a real API server, if there is one.
	Server *RealServer
}

// KindOf returns the kind for a GVK. Only built-in kinds have a Go type.
func KindOf(gvk schema.GroupVersionKind) *Kind {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	k := &Kind{GroupVersionKind: gvk, Resource: metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural.Resource}, Namespace: TestNamespace}
	if object, err := Builtins().New(gvk); err == nil {
		k.GoType = reflect.TypeOf(object).Elem()
	}
	k.Namespaced = !k8svalidation.ClusterScoped(schema.GroupResource{Group: gvk.Group, Resource: plural.Resource})
	return k
}

// An Object is a document as the API server holds it between two calls.
type Object struct {
	Raw   []byte         // JSON, as sent to webhooks
	Doc   any            // decoded Raw
	Typed runtime.Object // Raw decoded into its Go type, for a built-in kind
	// refused caches the reasons to reject the object, once judged is set.
	refused []string
	judged  bool
	against *Object // the stored object, if refused is about an update
	// refusals are a real API server's reasons to reject it as a new object.
	refusals []string
}

// Object decodes, defaults and encodes a document as the API server does.
func (k *Kind) Object(doc any) (*Object, error) {
	raw := tree.Encode(doc)
	if k.GoType == nil && k.Custom == nil && k.Server == nil {
		return &Object{Raw: raw, Doc: doc}, nil
	}
	return k.TakeIn(raw)
}

// TakeIn decodes and defaults a JSON document as the API server does, and encodes it again. It caches the result.
func (k *Kind) TakeIn(raw []byte) (*Object, error) {
	key := DigestOf(raw)
	if o, ok := k.Memory.objects.get(key); ok {
		return o, nil
	}
	o, err := k.decoded(raw)
	if err == nil {
		k.Memory.objects.put(key, o, perByte*len(o.Raw))
	}
	return o, err
}

// decoded decodes and defaults a document, with the API server if there is one.
func (k *Kind) decoded(raw []byte) (*Object, error) {
	if k.Server != nil {
		return k.Server.takeIn(raw, k.modelled)
	}
	return k.modelled(raw)
}

// modelled decodes and defaults a document with the API server's code in this process.
func (k *Kind) modelled(raw []byte) (*Object, error) {
	if k.Custom != nil {
		return k.Custom.takeIn(raw)
	}
	if k.GoType == nil {
		doc, err := tree.Decode(raw)
		return &Object{Raw: raw, Doc: doc}, err
	}
	value := reflect.New(k.GoType)
	if err := decode.Unmarshal(raw, value.Interface()); err != nil {
		return nil, fmt.Errorf("the API server cannot decode it as a %s: %w", k.Kind, err)
	}
	typed := value.Interface().(runtime.Object)
	typed.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	k8svalidation.Default(typed)
	raw, err := encode.Append(nil, value.Elem(), shape.Of(k.GoType))
	if err != nil {
		return nil, err
	}
	doc, err := tree.Decode(raw)
	return &Object{Raw: raw, Doc: doc, Typed: typed}, err
}

// DropsStatus reports whether the API server ignores the status of an object in requests for the object itself, because
// the kind has the status subresource.
func (k *Kind) DropsStatus() bool { return k.Custom != nil && k.Custom.version.HasStatus }

// Problems returns the API server's reasons to reject the object: as an update if k.Old is set, otherwise as a new
// object.
func (k *Kind) Problems(o *Object) []string {
	if o.judged && o.against == k.Old {
		return o.refused
	}
	o.judged, o.against, o.refused = true, k.Old, nil
	switch {
	case k.Old != nil:
		o.refused = k.UpdateProblems(o, k.Old)
	case k.Server != nil:
		o.refused = o.refusals
	case k.Custom != nil:
		o.refused = k.Custom.problems(o)
	case o.Typed != nil:
		o.refused = texts(k8svalidation.Validate(o.Typed))
	}
	return o.refused
}

// UpdateProblems returns the API server's reasons to reject an update.
func (k *Kind) UpdateProblems(o, old *Object) []string {
	switch {
	case k.Server != nil:
		return k.Server.updateProblems(o, old)
	case k.Custom != nil:
		return k.Custom.updateProblems(o, old)
	case o.Typed != nil:
		return texts(k8svalidation.ValidateUpdate(o.Typed, old.Typed))
	}
	return nil
}

// Builtins returns the scheme with the Go types of the built-in kinds. It is created when it is first needed, because
// it is large.
var Builtins = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
})

// TestNamespace is the namespace of objects that do not name one, if the namespaceSelectors match it.
const TestNamespace = "shop"

// Name returns the kind in words, such as "apps/v1 Deployment".
func (k *Kind) Name() string { return NameOfKind(k.GroupVersionKind) }

// NameOfKind returns a kind in words, such as "apps/v1 Deployment".
func NameOfKind(gvk schema.GroupVersionKind) string {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return apiVersion + " " + kind
}

// GVKOf returns the kind of a document. It returns an error if the document has no apiVersion or no kind.
func GVKOf(doc any) (schema.GroupVersionKind, error) {
	fields, _ := doc.(map[string]any)
	apiVersion, _ := fields["apiVersion"].(string)
	kind, _ := fields["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || kind == "" {
		return schema.GroupVersionKind{}, fmt.Errorf("a sample has apiVersion %q and kind %q: set its TypeMeta, because admitkit knows only the kinds of built-in Go types", apiVersion, kind)
	}
	return gv.WithKind(kind), nil
}

// IsNamespace reports whether k is the kind Namespace.
func (k *Kind) IsNamespace() bool { return k.Group == "" && k.Resource.Resource == "namespaces" }

// NamespaceOf returns the namespace of a request. For a Namespace, it returns the name of the Namespace.
func (k *Kind) NamespaceOf(objects ...*Object) string {
	switch {
	case k.IsNamespace():
		return NameOf(objects...)
	case !k.Namespaced:
		return ""
	}
	for _, o := range objects {
		if o == nil {
			continue
		}
		if value, ok := tree.Get(o.Doc, edits.Metadata.Member("namespace")); ok {
			text, _ := value.(string)
			return text
		}
	}
	return k.Namespace
}

// Within reports whether the scope of a rule includes the kind, like the API server (predicates/rules.Matcher).
func (k *Kind) Within(scope *admissionregistrationv1.ScopeType) bool {
	if scope == nil {
		return true
	}
	switch *scope {
	case admissionregistrationv1.NamespacedScope:
		return k.Namespaced
	case admissionregistrationv1.ClusterScope:
		return !k.Namespaced
	}
	return true
}

// NameOf returns the name of the first object that has one, or "".
func NameOf(objects ...*Object) string {
	for _, o := range objects {
		if o == nil {
			continue
		}
		if name, ok := tree.Get(o.Doc, tree.Path{{Name: "metadata"}, {Name: "name"}}); ok {
			text, _ := name.(string)
			return text
		}
	}
	return ""
}
