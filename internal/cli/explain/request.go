// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/rulematch"
	"github.com/admitkit/admitkit/pkg/chain"
)

// An Ask has the flags that describe the API request, such as the operation and the user. It is used for every object
// of -f.
type Ask struct {
	// Operation is the operation. Empty means CREATE, or the operation of the subresource.
	Operation   string
	SubResource string
	// Old are the stored objects for UPDATE.
	Old []*objects.Object
	// Namespace and Name are used for objects without their own. NamespaceLabels are the labels of the
	// namespace, or nil if they were not given.
	Namespace, Name string
	NamespaceLabels map[string]string
	// Resource has the form RESOURCE.VERSION.GROUP and is needed for unknown kinds.
	Resource string
	DryRun   bool
	User     *User
}

// A knownRequest is the API request that explain examines, and the limits of what explain knows about it.
type knownRequest struct {
	chain.Request
	resource resource
	kind     schema.GroupVersionKind
	// generated means that explain generated the body of the request from the object. The body lacks the fields that
	// only a client sets.
	generated bool
	// uidUnknown and extraUnknown mean that these fields of the user are unknown.
	uidUnknown, extraUnknown bool
	// recording is set for the request of a recorded call.
	recording *recording

	notes []string
}

// request derives the API request from an object and the flags. It may read the old object of an update from the
// cluster.
func (w *Facts) request(ctx context.Context, o *objects.Object, ask Ask) (*knownRequest, error) {
	r, sub, err := w.target(o, ask)
	if err != nil {
		return nil, err
	}
	a := &knownRequest{resource: r, kind: o.GVK}
	a.Resource, a.SubResource = metav1.GroupVersionResource(r.GroupVersionResource), sub
	a.Name, a.DryRun = ask.Name, ask.DryRun
	if r.namespaced {
		a.Namespace = ask.Namespace
		for _, other := range []string{o.Namespace, metav1.NamespaceDefault} {
			if a.Namespace == "" {
				a.Namespace = other
			}
		}
	}
	as := subresource{operation: "CREATE"}
	if sub != "" {
		if as, err = r.subresource(sub); err != nil {
			return nil, err
		}
	}
	if err := a.operate(strings.ToUpper(ask.Operation), as); err != nil {
		return nil, err
	}
	if r.unsure && w.resources == nil && isBuiltIn(o.GVK) {
		a.notes = append(a.notes, fmt.Sprintf("API servers serve %s only if --runtime-config enables it", o.GVK.GroupVersion()))
	}
	user := w.userOf(ask)
	a.User, a.uidUnknown, a.extraUnknown = userInfo(user), user.UID == nil, user.Extra == nil
	if a.Operation == admissionv1.Update && len(ask.Old) == 0 && w.stored != nil {
		old, err := w.stored(ctx, r.GroupVersionResource, a.Namespace, o.Name)
		if err != nil {
			return nil, err
		}
		ask.Old = []*objects.Object{old}
	}
	return a, a.fill(o, as, ask)
}

// target finds the resource and the subresource of the request.
func (w *Facts) target(o *objects.Object, ask Ask) (resource, string, error) {
	of, sub := sentTo(o.GVK)
	if ask.SubResource != "" {
		if sub != "" && sub != ask.SubResource {
			return resource{}, "", problem.New("a %s is for the subresource %s, not %s", o.GVK.Kind, sub, ask.SubResource)
		}
		sub = ask.SubResource
	}
	if ask.Resource != "" {
		r, err := w.resourceNamed(ask.Resource, ask.Namespace != "" || o.Namespace != "")
		if plural, _ := meta.UnsafeGuessKindToResource(o.GVK); err == nil && sub == "" && isBuiltIn(o.GVK) && plural.GroupResource() != r.GroupResource() {
			return r, "", problem.New("--resource %s does not match a %s", ask.Resource, o.GVK.Kind)
		}
		return r, sub, err
	}
	switch {
	case of != "":
		r, err := w.resourceNamed(of+".v1.", true)
		return r, sub, err
	case o.GVK == scaleKind:
		return resource{}, "", problem.New("a Scale does not name the resource that it scales").Hint("--resource deployments.v1.apps")
	}
	r, err := w.resourceOf(o.GVK)
	return r, sub, err
}

func (a *knownRequest) operate(given string, as subresource) error {
	a.Operation = admissionv1.Operation(given)
	where := a.resource.GroupResource().String()
	if a.SubResource != "" {
		where += "/" + a.SubResource
	}
	switch given {
	case "":
		a.Operation = admissionv1.Operation(as.operation)
	case as.operation:
	case "CREATE", "UPDATE", "DELETE":
		if a.SubResource != "" {
			return problem.New("%s does not support %s, only %s", where, given, as.operation)
		}
	case "CONNECT":
		if a.SubResource == "" {
			return problem.New("%s does not support CONNECT, but subresources such as pods/exec do", where).Hint("--subresource exec")
		}
		return problem.New("%s does not support %s, only %s", where, given, as.operation)
	default:
		return problem.New("--operation %s: want CREATE, UPDATE, DELETE or CONNECT", given)
	}
	return nil
}

// fill sets the object and the old object of the request.
func (a *knownRequest) fill(o *objects.Object, as subresource, ask Ask) error {
	object, err := a.sent(o, as)
	if err != nil {
		return err
	}
	old, err := a.old(o, as, ask)
	if err != nil {
		return err
	}
	switch a.Operation {
	case admissionv1.Delete:
		a.OldObject = object
	case admissionv1.Update:
		a.Object, a.OldObject = object, old
		if a.Resource.Resource == "pods" && a.SubResource == "" {
			a.Object, err = keptByPlugins(object, old)
		}
	default:
		a.Object = object
	}
	if err != nil {
		return err
	}
	if as.kind.Kind != "" {
		a.kind = as.kind
	}
	if a.Operation == admissionv1.Connect && a.Name == "" {
		if a.Name = o.Name; a.Name == "" {
			return problem.New("the request needs a name: a %s does not say to which of the %s it applies", o.GVK.Kind, a.Resource.Resource).Hint("--name NAME")
		}
	}
	return nil
}

// old returns the old object of an update: the matching object of ask.Old, or the new object if there is no ask.Old. It
// returns nil for other operations.
func (a *knownRequest) old(o *objects.Object, as subresource, ask Ask) ([]byte, error) {
	if a.Operation != admissionv1.Update {
		if len(ask.Old) > 0 {
			return nil, problem.New("--old is for UPDATE: a %s request has only the object of -f", a.Operation)
		}
		return nil, nil
	}
	i := slices.IndexFunc(ask.Old, func(old *objects.Object) bool {
		return old.GVK.GroupKind() == o.GVK.GroupKind() && old.Name == o.Name && (old.Namespace == o.Namespace || old.Namespace == "" || o.Namespace == "")
	})
	if i >= 0 {
		return a.sent(ask.Old[i], as)
	}
	if len(ask.Old) > 0 {
		return nil, problem.New("--old has no %s", o)
	}
	a.notes = append(a.notes, "the old object is assumed to equal the new one; --old FILE sets another")
	return a.sent(o, as)
}

// sent returns the body of the request: the object or, for some subresources, another kind generated from it.
func (a *knownRequest) sent(o *objects.Object, as subresource) ([]byte, error) {
	if as.kind.Kind == "" || o.GVK == as.kind {
		return o.JSON, nil
	}
	made := map[string]any{"kind": as.kind.Kind, "apiVersion": as.kind.GroupVersion().String()}
	if a.Operation != admissionv1.Connect {
		metadata := map[string]any{"name": o.Name}
		if a.Namespace != "" {
			metadata["namespace"] = a.Namespace
		}
		made["metadata"] = metadata
	}
	switch as.kind.Kind {
	case "Scale":
		replicas, err := a.replicas(o)
		if err != nil {
			return nil, err
		}
		made["spec"], made["status"] = map[string]any{"replicas": replicas}, map[string]any{"replicas": replicas}
	case "Binding":
		made["target"] = map[string]any{"kind": "Node", "name": "node"}
	case "TokenRequest":
		made["spec"] = map[string]any{"audiences": []any{}}
	}
	if a.generated = true; as.kind != scaleKind {
		a.notes = append(a.notes, fmt.Sprintf("webhooks receive a different object, of kind %s, and explain knows only its name: pass that object with -f", as.kind.Kind))
	}
	return json.Marshal(made)
}

func (a *knownRequest) replicas(o *objects.Object) (any, error) {
	u, err := o.Unstructured()
	if err != nil {
		return nil, problem.New("%w", err)
	}
	path := []string{"spec", "replicas"}
	if d := a.resource.definition; d != nil {
		for _, v := range d.Spec.Versions {
			if v.Name == a.resource.Version && v.Subresources != nil && v.Subresources.Scale != nil {
				path = strings.Split(strings.TrimPrefix(v.Subresources.Scale.SpecReplicasPath, "."), ".")
			}
		}
	}
	var value any = u.Object
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	if value == nil && a.resource.definition == nil {
		return 1, nil // the default of all built-in kinds
	}
	if value == nil {
		return 0, nil
	}
	return value, nil
}

// userOf returns the user of the request.
func (w *Facts) userOf(ask Ask) User {
	switch {
	case ask.User != nil:
		return *ask.User
	case w.user != nil:
		return *w.user
	}
	return User{Name: "admin", Groups: []string{"system:masters"}}
}

// userInfo returns the user with the groups that the API server adds.
func userInfo(u User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, Groups: slices.Clone(u.Groups), UID: ptr.Deref(u.UID, "")}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	if account, ok := strings.CutPrefix(u.Name, "system:serviceaccount:"); ok && len(u.Groups) == 0 {
		namespace, _, _ := strings.Cut(account, ":")
		info.Groups = append(info.Groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	all := "system:authenticated"
	if u.Name == "system:anonymous" {
		all = "system:unauthenticated"
	}
	if !slices.Contains(info.Groups, all) {
		info.Groups = append(info.Groups, all)
	}
	return info
}

// ruleRequest returns the part of a request that rules of webhooks and policies read.
func (a *knownRequest) ruleRequest() rulematch.Request {
	r := a.resource.GroupVersionResource
	isNamespace := r.GroupVersion() == schema.GroupVersion{Version: "v1"} && r.Resource == "namespaces"
	return rulematch.Request{
		Operation: admissionregistrationv1.OperationType(a.Operation),
		Group:     r.Group, Version: r.Version, Resource: r.Resource, SubResource: a.SubResource,
		Namespaced: a.Namespace != "" && !isNamespace,
	}
}
