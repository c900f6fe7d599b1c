// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Options configure the engine that [New] returns. The zero value is the default.
type Options struct {
	// Plugins are in-tree admission plugins. They run in this order before the webhooks, in both
	// rounds of the mutating chain, as in the API server.
	Plugins []Plugin
	// Types are functions that add Go types to those of Kubernetes, such as the AddToScheme of a
	// package. The engine drops fields that these types do not have, and runs their defaulting
	// functions. Custom resources belong in CRDs instead.
	Types []func(*runtime.Scheme) error
	// CRDs define custom resources. Their objects are pruned, defaulted and validated by their schemas. A webhook with
	// matchPolicy Equivalent is called if its rules name any of the versions.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Conversions answer the conversion reviews of a CustomResourceDefinition, by its name. A
	// definition without an entry is converted by the webhook in its clientConfig.
	Conversions map[string]http.Handler
	// Namespaces are the namespaces that exist, with their labels. The engine adds the label
	// kubernetes.io/metadata.name. If nil, every namespace exists and has that label only.
	// While a Namespace is deleted, it has the labels of the old object.
	Namespaces map[string]map[string]string
	// Policies are admission policies, which the engine evaluates besides the webhooks.
	Policies Policies
	// Authorizer answers the authorizer variable of matchConditions and policies. If nil, members of
	// system:masters may do everything and other users nothing.
	Authorizer authorizer.Authorizer
	// ResolveService returns the address, host:port, of a Service. If nil, the engine looks up
	// <name>.<namespace>.svc. The certificate must be valid for that name in both cases.
	ResolveService func(ctx context.Context, namespace, name string, port int32) (address string, err error)
	// Default sets the defaults of a built-in type: after a request is decoded, and after each
	// patch. If nil, no defaults are set.
	Default func(runtime.Object)
	// Validate validates an object of a built-in type, after the mutating and before the validating webhooks. old is
	// nil unless the operation is UPDATE. If Validate is nil, only the metadata is validated.
	Validate func(obj, old runtime.Object) field.ErrorList
}

// Plugin is an in-tree admission plugin with the name under which it is registered.
type Plugin struct {
	Name      string
	Admission admission.Interface
}

// ConnectOptions configure the engine that [Connect] returns. The zero value is the default.
type ConnectOptions struct {
	// Namespaces are created with these labels, and no others are. A request in any other namespace that does not exist
	// is rejected by the API server. If nil, each namespace is created when a request names it.
	Namespaces map[string]map[string]string
	// CRDs are served by the API server while the engine is open.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// AuditLog is the path of the file to which the API server writes audit events as JSON lines,
	// at level Metadata or above. At level Request and above, they contain the patches. The
	// engine reads [Call.Mutated] and [Result.Annotations] from this file. If empty, it derives
	// Mutated from the patches, and there are no annotations.
	AuditLog string
	// CallsOnly leaves [Result.Webhooks] empty. To tell why webhooks were not called, the engine evaluates their predicates
	// in this process, and reads the Namespace of each request.
	CallsOnly bool
}
