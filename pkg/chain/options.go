// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// An Option changes what the engine in this process does.
type Option func(*options)

type options struct {
	plugins    []plugin
	types      []func(*runtime.Scheme) error
	namespaces map[string]*corev1.Namespace
	authorizer authorizer.Authorizer
	resolve    func(ctx context.Context, namespace, name string, port int32) (address string, err error)
	defaulter  func(runtime.Object)
	validator  func(obj, old runtime.Object) field.ErrorList
	// definitions are of custom resources.
	definitions []*apiextensionsv1.CustomResourceDefinition
	conversions map[string]http.Handler
}

type plugin struct {
	name      string
	admission admission.Interface
}

// WithPlugin runs an in-tree admission plugin, in the order given, before the webhooks: in both
// rounds of the mutating chain, as the API server does.
func WithPlugin(name string, p admission.Interface) Option {
	return func(o *options) { o.plugins = append(o.plugins, plugin{name, p}) }
}

// WithTypes adds Go types to those of Kubernetes, such as the AddToScheme of their package. They
// are treated as an API server that was built with them does: what they do not know is dropped,
// and their defaulting functions run. Custom resources are not such types: see [WithCRDs].
func WithTypes(addToScheme ...func(*runtime.Scheme) error) Option {
	return func(o *options) { o.types = append(o.types, addToScheme...) }
}

// WithCRDs makes custom resources known: their objects are pruned, defaulted and validated by
// their schemas, and webhooks with matchPolicy Equivalent are called with any of their versions.
// Conversion webhooks are called where their clientConfig says, unless WithConversion says who
// answers.
func WithCRDs(definitions ...*apiextensionsv1.CustomResourceDefinition) Option {
	return func(o *options) { o.definitions = append(o.definitions, definitions...) }
}

// WithConversion answers the conversion reviews of a CustomResourceDefinition, by its name, whatever its
// clientConfig says.
func WithConversion(definition string, handler http.Handler) Option {
	return func(o *options) {
		if o.conversions == nil {
			o.conversions = map[string]http.Handler{}
		}
		o.conversions[definition] = handler
	}
}

// WithNamespaces says which namespaces exist, with their labels; kubernetes.io/metadata.name is
// added. Without this option every namespace exists, with that label only. While a Namespace is being
// deleted, it has the labels of the old object.
func WithNamespaces(labels map[string]map[string]string) Option {
	return func(o *options) {
		if o.namespaces == nil {
			o.namespaces = map[string]*corev1.Namespace{}
		}
		for name, own := range labels {
			o.namespaces[name] = newNamespace(name, own)
		}
	}
}

// WithAuthorizer answers the authorizer of matchConditions. Without it, members of
// system:masters may do everything and others nothing.
func WithAuthorizer(a authorizer.Authorizer) Option {
	return func(o *options) { o.authorizer = a }
}

// WithServiceResolver says at which address, host:port, a service is reached. Without it, the
// name of the service is looked up: <name>.<namespace>.svc. Certificates are verified for that
// name, wherever the service is.
func WithServiceResolver(resolve func(ctx context.Context, namespace, name string, port int32) (address string, err error)) Option {
	return func(o *options) { o.resolve = resolve }
}

// WithDefaulting fills in the defaults of built-in types: when a request is decoded, and after each
// patch.
func WithDefaulting(fill func(runtime.Object)) Option {
	return func(o *options) { o.defaulter = fill }
}

// WithValidation validates objects of built-in types between the mutating and the validating
// webhooks; old is nil unless the operation is UPDATE.
func WithValidation(validate func(obj, old runtime.Object) field.ErrorList) Option {
	return func(o *options) { o.validator = validate }
}

func newNamespace(name string, labels map[string]string) *corev1.Namespace {
	all := map[string]string{}
	maps.Copy(all, labels)
	all[corev1.LabelMetadataName] = name
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}
}

// mastersMay is the authorizer of an engine without one.
var mastersMay = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	for _, group := range a.GetUser().GetGroups() {
		if group == masters {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
})

const masters = "system:masters"
