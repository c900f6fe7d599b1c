// SPDX-License-Identifier: Apache-2.0

// Package access tells hooks what a user may do. Some of Kubernetes' admission controllers allow a request only if its
// user may do something else as well: OwnerReferencesPermissionEnforcement, for example, asks for the permission to
// update the finalizers of an owner.
//
// An [Authorizer] sends SubjectAccessReviews with everything that the API server knows about the user, and keeps the
// answers as long as the API server's webhook authorizer does.
package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/admitkit/admitkit/internal/flight"
)

// Options configure an [Authorizer].
type Options struct {
	// Client sends the reviews, such as clientset.AuthorizationV1(). It is required.
	Client authorizationclient.AuthorizationV1Interface
	// Namespace, if set, makes the Authorizer send LocalSubjectAccessReviews in this namespace, for which
	// a Role is enough. It then answers only for this namespace.
	Namespace string
	// AllowedFor is how long the Authorizer keeps an answer that allows. Zero means 5 min, negative not at all. During
	// this time a user keeps a permission that was revoked.
	AllowedFor time.Duration
	// DeniedFor is how long it keeps any other answer. Zero means 30 s, negative not at all.
	DeniedFor time.Duration
	// Size is the largest number of answers that are kept. Zero means 8192, negative none.
	Size int
	// Timeout limits one review. Zero means 10 s, negative no limit. A call waits no longer than its own context
	// allows.
	Timeout time.Duration
	// MaxReviews is the largest number of reviews at a time. Zero means 10, negative no limit. Further reviews wait.
	// The client may have a limit of its own: set rest.Config.QPS, whose default is 5 requests a second.
	MaxReviews int
}

// An Authorizer answers whether a user may do something. It is safe for concurrent use.
type Authorizer struct {
	options Options
	reviews *flight.Group[Answer]
	answers *cache.LRUExpireCache // nil if none are kept
}

// An Answer is the result of a review.
type Answer struct {
	// Allowed reports whether the user has the permission.
	Allowed bool
	// Denied reports that an authorizer denies the permission. If Allowed and Denied are both false, no authorizer had
	// an opinion.
	Denied bool
	// Reason is the API server's reason, which may be empty. It is meant for logs: it can name roles and bindings.
	Reason string
	// EvaluationError is not empty if an authorizer failed, such as a webhook that did not answer. If Allowed is false
	// as well, treat the answer as a failure, not as a denial. Such an answer is not kept.
	EvaluationError string
}

// New returns an [Authorizer] with these options. It returns an error if Client is nil.
func New(o Options) (*Authorizer, error) {
	if o.Client == nil {
		return nil, errors.New("access: Options.Client is required, such as clientset.AuthorizationV1()")
	}
	a := &Authorizer{options: o, reviews: flight.New[Answer](flight.Options{
		To: "the API server", Sender: "Options.Client", Timeout: o.Timeout, Most: o.MaxReviews, Cancel: true,
	})}
	if size := cmp.Or(o.Size, 8192); size > 0 {
		a.answers = cache.NewLRUExpireCache(size)
	}
	return a, nil
}

// May answers whether a user may do something with a resource. For the user who sent a request, pass req.UserInfo. The
// error has no API status, so a hook that returns it fails instead of denying the request. If ctx ends before the
// answer is known, the error wraps ctx.Err(). With [Options.Namespace], May returns an error if the resource is in
// another namespace.
func (a *Authorizer) May(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (Answer, error) {
	if local := a.options.Namespace; local != "" && what.Namespace != local {
		return Answer{}, fmt.Errorf("access: the authorizer answers only for namespace %s, not for %q", local, what.Namespace)
	}
	return a.answer(ctx, user, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &what})
}

// MayRequest answers whether a user may send a request to a non-resource path, such as a "get" to "/metrics". It
// returns the same errors as [Authorizer.May]. With [Options.Namespace], it always returns an error.
func (a *Authorizer) MayRequest(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.NonResourceAttributes) (Answer, error) {
	if local := a.options.Namespace; local != "" {
		return Answer{}, fmt.Errorf("access: the authorizer answers only for namespace %s, not for the path %s", local, what.Path)
	}
	return a.answer(ctx, user, authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &what})
}

func (a *Authorizer) answer(ctx context.Context, user authenticationv1.UserInfo, spec authorizationv1.SubjectAccessReviewSpec) (Answer, error) {
	spec.User, spec.UID, spec.Groups = user.Username, user.UID, user.Groups
	for name, values := range user.Extra {
		if spec.Extra == nil {
			spec.Extra = make(map[string]authorizationv1.ExtraValue, len(user.Extra))
		}
		spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return Answer{}, fmt.Errorf("access: %w", err)
	}
	sum := sha256.Sum256(encoded) // names are chosen by users, and can be long
	key := string(sum[:])
	if a.answers != nil {
		if kept, ok := a.answers.Get(key); ok {
			return kept.(Answer), nil
		}
	}
	spec = *spec.DeepCopy() // the review can outlive the call, whose handler may change its request
	answer, err := a.reviews.Do(ctx, key, func(ctx context.Context) (Answer, error) { return a.review(ctx, key, spec) })
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return Answer{}, fmt.Errorf("asking for the permissions of %s: %w", user.Username, ctx.Err())
	}
	return Answer{}, fmt.Errorf("asking for the permissions of %s: %s", user.Username, err.Error()) // without an API status
}

// review asks the API server, and keeps the answer.
func (a *Authorizer) review(ctx context.Context, key string, spec authorizationv1.SubjectAccessReviewSpec) (Answer, error) {
	status, err := a.send(ctx, spec)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Allowed: status.Allowed && !status.Denied, Denied: status.Denied, Reason: status.Reason, EvaluationError: status.EvaluationError}
	if !answer.Allowed && answer.EvaluationError != "" {
		return answer, nil
	}
	keep := cmp.Or(a.options.DeniedFor, 30*time.Second)
	if answer.Allowed {
		keep = cmp.Or(a.options.AllowedFor, 5*time.Minute)
	}
	if a.answers != nil && keep > 0 {
		a.answers.Add(key, answer, keep)
	}
	return answer, nil
}

func (a *Authorizer) send(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	if namespace := a.options.Namespace; namespace != "" {
		review := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: spec}
		answered, err := a.options.Client.LocalSubjectAccessReviews(namespace).Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
		return answered.Status, nil
	}
	answered, err := a.options.Client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	return answered.Status, nil
}

// Rule returns the permission that an Authorizer without [Options.Namespace] needs: to create SubjectAccessReviews.
// Pass it to Deps.Needs of package program.
func Rule() rbacv1.PolicyRule { return rule("subjectaccessreviews") }

// LocalRule returns the permission that an Authorizer with [Options.Namespace] needs: to create
// LocalSubjectAccessReviews. Pass it to Deps.NeedsIn of package program.
func LocalRule() rbacv1.PolicyRule { return rule("localsubjectaccessreviews") }

func rule(resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{resource}, Verbs: []string{"create"}}
}
