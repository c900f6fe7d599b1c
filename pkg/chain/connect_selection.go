// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admitkit/admitkit/pkg/chain/internal/realserver"
	"github.com/admitkit/admitkit/pkg/chain/internal/strategy"
)

// A serverAdmission is one request to a real API server, with the data of its Result.
type serverAdmission struct {
	*realserver.Submission
	audit     *realserver.AuditLog
	explainer *Chain
	builtIn   bool // the object has a Go type
	callsOnly bool // see ConnectOptions
	limits    []Limit
}

// limit records a difference from what the API server would have done without the engine.
func (a *serverAdmission) limit(code LimitCode, format string, args ...any) {
	a.limits = append(a.limits, Limit{code, fmt.Sprintf(format, args...)})
}

// newExplainer returns an engine in this process that explains why webhooks are not called, because the API server
// gives no reasons. It admits no requests.
func newExplainer(client *realserver.API, w Webhooks, crds []*apiextensionsv1.CustomResourceDefinition) (*Chain, error) {
	return New(w, Options{CRDs: crds, Authorizer: authorizer.AuthorizerFunc(serverAuthorizer{client}.authorize)})
}

// A serverAuthorizer answers the authorizer variable of matchConditions with SubjectAccessReviews.
type serverAuthorizer struct{ api *realserver.API }

// authorize asks the API server whether the user may do what a describes.
func (s serverAuthorizer) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: a.GetUser().GetName(), UID: a.GetUser().GetUID(), Groups: a.GetUser().GetGroups(), Extra: map[string]authorizationv1.ExtraValue{},
	}}
	for key, values := range a.GetUser().GetExtra() {
		review.Spec.Extra[key] = values
	}
	if a.IsResourceRequest() {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
			Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
		}
	} else {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.GetPath(), Verb: a.GetVerb()}
	}
	if err := s.api.Write(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review); err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	switch {
	case review.Status.Allowed:
		return authorizer.DecisionAllow, review.Status.Reason, nil
	case review.Status.Denied:
		return authorizer.DecisionDeny, review.Status.Reason, nil
	}
	return authorizer.DecisionNoOpinion, review.Status.Reason, nil
}

// verdicts returns for each webhook whether it was called, and why.
func (a *serverAdmission) verdicts(ctx context.Context, result *Result, calls []realserver.ObservedCall) []Selection {
	verdicts := make([]Selection, len(a.Proxy.Targets))
	for i, t := range a.Proxy.Targets {
		called := slices.ContainsFunc(calls, func(c realserver.ObservedCall) bool { return c.Target == t })
		verdicts[i] = Selection{Configuration: t.Configuration, Webhook: t.Webhook, Mutating: t.Mutating, Index: t.Index, Called: called}
		if called {
			verdicts[i].Reason = Matches
		}
	}
	if err := a.decide(ctx, result, calls, verdicts); err != nil {
		a.limit(SelectionUnknown, "The reasons why webhooks were not called are unknown: %v.", err)
	}
	return verdicts
}

// decide sets the reasons in verdicts. It evaluates the predicates of each webhook for the object that the webhook
// received, or would have received.
func (a *serverAdmission) decide(ctx context.Context, result *Result, calls []realserver.ObservedCall, verdicts []Selection) error {
	x := a.explainer
	req := Request(a.Request)
	req.Namespace = a.ObjectNamespace
	if a.Operation != admissionv1.Create { // on CREATE, ObjectName may be generated after the webhook calls
		req.Name = a.ObjectName
	}
	req.User = withGroups(a.User)
	s, refusal, err := x.decode(req)
	if err != nil || refusal != nil {
		return firstError(err, refusal)
	}
	letGo, err := a.knowNamespace(ctx)
	if err != nil {
		return err
	}
	defer letGo()
	a.builtIn = strategy.BuiltIn().Recognizes(s.Kind)
	s.Context = ctx
	if a.Stored != nil && s.Old != nil {
		if s.Old, _, _, err = x.objects.DecodeObject(a.Stored.Encode()); err != nil {
			return err
		}
	}
	for i, h := range slices.Concat(x.mutating, x.validating) {
		object, err := a.asSeenBy(a.Proxy.Targets[i], result, calls)
		if err != nil {
			return err
		}
		why := x.predicates.decide(ctx, h, s.NewAttributes(object, s.Old), s.Interfaces())
		verdicts[i].setReason(why, result)
		if verdicts[i].Reason == "" {
			a.limit(SelectionUnknown, "The reason why %s was not called is unknown.", h.GetName())
		}
	}
	return nil
}

// setReason sets the reason and the detail of v. If the predicates match, but the webhook was not called because the
// request was rejected, the reason is ByRejection. If why contradicts Called in any other way, setReason changes
// nothing.
func (v *Selection) setReason(why reason, result *Result) {
	switch {
	case why.decision != Matches && !v.Called:
		v.Reason, v.Detail = why.decision, why.detail
	case why.decision == Matches && v.Called:
		v.Detail = why.detail
	case !v.Called && !result.Admitted():
		v.Reason, v.Detail = ByRejection, rejectedBefore
	}
}

// asSeenBy returns the object that the API server has when it is the turn of webhook t. A webhook that is not called
// does not change the object, so this is the object that the next called webhook received.
func (a *serverAdmission) asSeenBy(t *realserver.Target, result *Result, calls []realserver.ObservedCall) (runtime.Object, error) {
	raw := a.Object
	var patched []byte
	for i := range calls {
		c := &calls[i]
		if a.builtIn && converted(c.Request) {
			continue
		}
		raw, patched = c.Object(), nil
		if !c.Target.Mutating || t.Mutating && c.Target.Index >= t.Index {
			break
		}
		patched = c.Read().Patched
		if last := i == len(calls)-1; last && !t.Mutating && result.Object != nil {
			raw, patched = result.Object, nil
		}
	}
	if object, err := a.explainer.objects.DecodeAsSent(patched); patched != nil && err == nil && isBuiltIn(object) == a.builtIn {
		return object, nil // otherwise the API server cannot use the patch either
	}
	if raw == nil {
		return nil, nil
	}
	return a.explainer.objects.DecodeAsSent(raw)
}

func isBuiltIn(object runtime.Object) bool {
	_, custom := object.(runtime.Unstructured)
	return !custom
}

// converted reports whether the API server converted the object before it sent the review.
func converted(review []byte) bool {
	var kinds struct {
		Request struct {
			Kind        any `json:"kind"`
			RequestKind any `json:"requestKind"`
		} `json:"request"`
	}
	_ = json.Unmarshal(review, &kinds) // the API server writes valid JSON
	return !realserver.EqualValue(kinds.Request.Kind, kinds.Request.RequestKind)
}

// knowNamespace makes the explainer use the labels that the namespace has on the API server, until letGo is called.
func (a *serverAdmission) knowNamespace(ctx context.Context) (letGo func(), err error) {
	var ns corev1.Namespace
	switch {
	case a.Resource.Group == "" && a.Resource.Resource == "namespaces" && a.Stored != nil:
		err = json.Unmarshal(a.Stored.Encode(), &ns)
	case a.ObjectNamespace != "":
		err = a.API.Get(ctx, realserver.NamespacesPath+"/"+a.ObjectNamespace, &ns)
	}
	switch {
	case apierrors.IsNotFound(err) || err == nil && ns.Name == "":
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("namespace %s: %w", a.ObjectNamespace, err)
	}
	return a.explainer.known.Hold(&ns), nil
}

// withGroups adds the group of all authenticated users, as the API server does.
func withGroups(user authenticationv1.UserInfo) authenticationv1.UserInfo {
	const all = "system:authenticated"
	if user.Username != "" && !slices.Contains(user.Groups, all) {
		user.Groups = append(slices.Clone(user.Groups), all)
	}
	return user
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
