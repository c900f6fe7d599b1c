// SPDX-License-Identifier: Apache-2.0

package inprocess

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

	"github.com/admitkit/admitkit/internal/customresource"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// A Request is a request of a client. Its fields are those of chain.Request.
type Request struct {
	Operation       admissionv1.Operation
	Resource        metav1.GroupVersionResource
	SubResource     string
	Namespace, Name string
	Object          []byte
	OldObject       []byte
	DryRun          bool
	FieldManager    string
	User            authenticationv1.UserInfo
}

// A DecodedRequest is a request as the API server decodes it.
type DecodedRequest struct {
	Operation       admission.Operation
	Resource        schema.GroupVersionResource
	SubResource     string
	Kind            schema.GroupVersionKind
	Namespace, Name string
	Object, Old     runtime.Object
	Options         runtime.Object
	DryRun          bool
	FieldManager    string
	User            user.Info
	Unknown         []error // unknown and duplicate fields, which the API server warns about
}

// Decode decodes a request. refusal is the error with which the API server rejects the request before admission. err
// means that a client could not send such a request.
func (o *Objects) Decode(req Request) (a *DecodedRequest, refusal, err error) {
	a = &DecodedRequest{Operation: admission.Operation(req.Operation), Resource: schema.GroupVersionResource(req.Resource), SubResource: req.SubResource,
		Namespace: req.Namespace, Name: req.Name, DryRun: req.DryRun, FieldManager: req.FieldManager, User: userOf(req.User)}
	needsObject, needsOld := true, false
	switch req.Operation {
	case admissionv1.Create, admissionv1.Connect:
	case admissionv1.Update:
		needsOld = true
	case admissionv1.Delete:
		needsObject, needsOld = false, true
	default:
		return nil, nil, fmt.Errorf("operation %q must be CREATE, UPDATE, DELETE or CONNECT", req.Operation)
	}
	switch {
	case a.Resource.Resource == "" || a.Resource.Version == "":
		return nil, nil, errors.New("the resource is not set: it needs a resource and a version")
	case needsObject && req.Object == nil:
		return nil, nil, fmt.Errorf("a %s needs an object", req.Operation)
	case !needsObject && req.Object != nil:
		return nil, nil, fmt.Errorf("a %s must not have an object", req.Operation)
	case needsOld && req.OldObject == nil:
		return nil, nil, fmt.Errorf("a %s needs an old object", req.Operation)
	case !needsOld && req.OldObject != nil:
		return nil, nil, fmt.Errorf("a %s must not have an old object", req.Operation)
	}
	if needsOld {
		if a.Old, a.Kind, _, err = o.DecodeObject(req.OldObject); err != nil {
			return nil, nil, fmt.Errorf("the old object: %w", err)
		}
	}
	if needsObject {
		if a.Object, a.Kind, a.Unknown, refusal = o.DecodeObject(req.Object); errors.Is(refusal, errNotServed) {
			return nil, nil, refusal
		} else if refusal != nil {
			return a, apierrors.NewBadRequest(refusal.Error()), nil
		}
	}
	if gv := a.Kind.GroupVersion(); req.SubResource == "" && gv != a.Resource.GroupVersion() {
		return a, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
			gv, a.Resource.GroupVersion())), nil
	}
	a.Options = optionsOf(req)
	return a, a.setNames(o.CustomVersion(a.Kind)), nil
}

// DecodeObject decodes an object as the API server does by default, with warnings about unknown fields.
func (o *Objects) DecodeObject(data []byte) (runtime.Object, schema.GroupVersionKind, []error, error) {
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

// unmarshal decodes JSON as the strict serializer of the API server does, but does not read the kind again. The errors in
// strict are about unknown and duplicate fields.
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

// DecodeAsSent decodes an object that a webhook received. Unlike DecodeObject, it accepts values of any type in a
// custom resource, because a patch may have put them there.
func (o *Objects) DecodeAsSent(data []byte) (runtime.Object, error) {
	kind, err := json.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return nil, err
	}
	if o.scheme.Recognizes(*kind) {
		obj, _, _, err := o.DecodeObject(data)
		return obj, err
	}
	obj, _, err := o.serializer.Decode(data, kind, &unstructured.Unstructured{})
	if err != nil {
		return nil, err
	}
	o.Default(obj)
	return obj, nil
}

// setNames takes the namespace and the name of the request from the object, unless the request has them. On UPDATE, it
// returns an error if the name of the object differs from that of the request.
func (a *DecodedRequest) setNames(custom *customresource.Version) error {
	obj := a.Object
	if obj == nil {
		obj = a.Old
	}
	m, err := meta.Accessor(obj)
	if err != nil { // an object without metadata, such as the options of CONNECT
		return nil
	}
	if a.Namespace == "" {
		a.Namespace = m.GetNamespace()
	}
	switch {
	case custom != nil && !custom.Namespaced:
		a.Namespace = ""
	case a.Namespace == "" && (custom != nil || namespacedByDefault(a.Kind, a.Resource)):
		a.Namespace = metav1.NamespaceDefault
	}
	if a.Name == "" {
		a.Name = m.GetName()
	}
	if a.Operation == admission.Update && m.GetName() != a.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), a.Name))
	}
	if isNamespace(a.Resource) {
		a.Namespace = a.Name
	}
	return nil
}

// optionsOf returns the options of a request. Without TypeMeta, webhooks would receive empty options.
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

func isNamespace(r schema.GroupVersionResource) bool {
	return r.Group == "" && r.Resource == "namespaces"
}

// namespacedByDefault reports whether a built-in resource is namespaced. The engine then uses the namespace
// "default" for a request without one, as clients do.
func namespacedByDefault(kind schema.GroupVersionKind, r schema.GroupVersionResource) bool {
	return strategy.BuiltIn().Recognizes(kind) && !k8svalidation.ClusterScoped(r.GroupResource())
}
