// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// An asked is a request after the API server decoded it.
type asked struct {
	Request
	operation       admission.Operation
	resource        schema.GroupVersionResource
	kind            schema.GroupVersionKind
	namespace, name string
	object, old     runtime.Object
	options         runtime.Object
	user            user.Info
	unknown         []error // fields that the API server warns of
}

// decode makes an asked of a request. A refusal is what the API server says of a request that
// it does not get to admit; an error is of one that cannot be sent at all.
func (o *objects) decode(req Request) (a *asked, refusal, err error) {
	a = &asked{Request: req, operation: admission.Operation(req.Operation), resource: schema.GroupVersionResource(req.Resource),
		namespace: req.Namespace, name: req.Name, user: userOf(req.User)}
	needsObject, needsOld := true, false
	switch req.Operation {
	case admissionv1.Create, admissionv1.Connect:
	case admissionv1.Update:
		needsOld = true
	case admissionv1.Delete:
		needsObject, needsOld = false, true
	default:
		return nil, nil, fmt.Errorf("operation %q is none of CREATE, UPDATE, DELETE, CONNECT", req.Operation)
	}
	switch {
	case a.resource.Resource == "" || a.resource.Version == "":
		return nil, nil, errors.New("the resource is not set: it needs a resource and a version")
	case needsObject != (req.Object != nil):
		return nil, nil, fmt.Errorf("a %s has an object, or has none, as here", req.Operation)
	case needsOld != (req.OldObject != nil):
		return nil, nil, fmt.Errorf("a %s has an old object, or has none, as here", req.Operation)
	}
	if needsOld {
		if a.old, a.kind, _, err = o.decodeObject(req.OldObject); err != nil {
			return nil, nil, fmt.Errorf("the old object: %w", err)
		}
	}
	if needsObject {
		if a.object, a.kind, a.unknown, refusal = o.decodeObject(req.Object); errors.Is(refusal, errNotServed) {
			return nil, nil, refusal
		} else if refusal != nil {
			return a, apierrors.NewBadRequest(refusal.Error()), nil
		}
	}
	if gv := a.kind.GroupVersion(); req.SubResource == "" && gv != a.resource.GroupVersion() {
		return a, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
			gv, a.resource.GroupVersion())), nil
	}
	a.options = optionsOf(req)
	return a, a.place(o.customVersion(a.kind)), nil
}

// decodeObject decodes as the API server does when it is asked to warn of unknown fields, which
// is what it does by itself.
func (o *objects) decodeObject(data []byte) (runtime.Object, schema.GroupVersionKind, []error, error) {
	kind, err := json.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return nil, schema.GroupVersionKind{}, nil, err
	}
	if kind.Kind == "" || kind.Version == "" {
		return nil, *kind, nil, errors.New("the object has no kind, or no apiVersion")
	}
	if err := o.serves(*kind); err != nil {
		return nil, *kind, nil, err
	}
	into, err := o.New(*kind)
	if err != nil {
		return nil, *kind, nil, err
	}
	unknown, err := unmarshal(data, into)
	if err != nil {
		return nil, *kind, nil, fmt.Errorf("%s in version %q cannot be handled as a %s: %w", kind.Kind, kind.Version, kind.Kind, err)
	}
	if r := o.customOf(into); r != nil {
		pruned, err := r.Coerce(into.(*unstructured.Unstructured), false)
		if err != nil {
			return nil, *kind, nil, err
		}
		unknown = append(unknown, pruned...)
	}
	o.Default(into)
	return o.internal(into), *kind, unknown, nil
}

// unmarshal does what the strict serializer of the API server does, which would look for the kind once
// more. The fields of the first result are unknown or there twice.
func unmarshal(data []byte, into runtime.Object) (strict []error, err error) {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		return kjson.UnmarshalStrict(data, into)
	}
	content := map[string]any{}
	strict, err = kjson.UnmarshalStrict(data, &content)
	u.Object = content
	return strict, err
}

// decodeAsSent decodes what a webhook was sent: a custom resource may be as a patch left it, with
// values of any type.
func (o *objects) decodeAsSent(data []byte) (runtime.Object, error) {
	kind, err := json.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return nil, err
	}
	if o.scheme.Recognizes(*kind) {
		obj, _, _, err := o.decodeObject(data)
		return obj, err
	}
	obj, _, err := o.serializer.Decode(data, kind, &unstructured.Unstructured{})
	if err != nil {
		return nil, err
	}
	o.Default(obj)
	return obj, nil
}

// place finds out namespace and name, and checks that the object agrees.
func (a *asked) place(custom *customVersion) error {
	obj := a.object
	if obj == nil {
		obj = a.old
	}
	m, err := meta.Accessor(obj)
	if err != nil { // such as the options of CONNECT
		return nil
	}
	if a.namespace == "" {
		a.namespace = m.GetNamespace()
	}
	switch {
	case custom != nil && !custom.Namespaced:
		a.namespace = ""
	case a.namespace == "" && (custom != nil || namespacedByDefault(a.kind, a.resource)):
		a.namespace = metav1.NamespaceDefault
	}
	if a.name == "" {
		a.name = m.GetName()
	}
	if a.operation == admission.Update && m.GetName() != a.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), a.name))
	}
	if isNamespace(a.resource) {
		a.namespace = a.name
	}
	return nil
}

// optionsOf has TypeMeta, without which webhooks would be sent empty options.
func optionsOf(req Request) runtime.Object {
	var dryRun []string
	if req.DryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	typeMeta := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{Kind: kind, APIVersion: "meta.k8s.io/v1"}
	}
	switch req.Operation {
	case admissionv1.Create:
		return &metav1.CreateOptions{TypeMeta: typeMeta("CreateOptions"), DryRun: dryRun, FieldManager: req.FieldManager}
	case admissionv1.Update:
		return &metav1.UpdateOptions{TypeMeta: typeMeta("UpdateOptions"), DryRun: dryRun, FieldManager: req.FieldManager}
	case admissionv1.Delete:
		return &metav1.DeleteOptions{TypeMeta: typeMeta("DeleteOptions"), DryRun: dryRun}
	default:
		return nil
	}
}

func userOf(u authenticationv1.UserInfo) user.Info {
	if u.Username == "" && u.UID == "" && len(u.Groups) == 0 && len(u.Extra) == 0 {
		return &user.DefaultInfo{Name: "admin", Groups: []string{masters, user.AllAuthenticated}}
	}
	info := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string][]string{}
		}
		info.Extra[key] = values
	}
	return info
}

func isNamespace(r schema.GroupVersionResource) bool {
	return r.Group == "" && r.Resource == "namespaces"
}

// namespacedByDefault reports whether a resource is one of Kubernetes' own that is in namespaces,
// so that a request without one is for the namespace that clients take then.
func namespacedByDefault(kind schema.GroupVersionKind, r schema.GroupVersionResource) bool {
	return strategy.BuiltIn().Recognizes(kind) && !k8svalidation.ClusterScoped(r.GroupResource())
}
