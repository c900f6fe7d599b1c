// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// compiler returns the compiler for the matchConditions of all runs.
var compiler = sync.OnceValue(func() plugincel.ConditionCompiler {
	return plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// adminMay authorizes everything for conditions that use the authorizer, because the user is in system:masters.
var adminMay = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
})

// conditions evaluates the matchConditions of a webhook with the API server's own code. Under failurePolicy Fail, an
// error rejects the request.
type conditions func(ctx context.Context, k *objects.Kind, q *Query) (matches bool, err error)

func (w *Webhook) compile() conditions {
	if len(w.MatchConditions) == 0 {
		return func(context.Context, *objects.Kind, *Query) (bool, error) { return true, nil }
	}
	matcher := apiwebhook.NewMutatingWebhookAccessor(w.Name, "idempotence", &w.MutatingWebhook).GetCompiledMatcher(compiler())
	return func(ctx context.Context, k *objects.Kind, q *Query) (bool, error) {
		a, err := attributes(k, q)
		if err != nil {
			return false, err
		}
		result := matcher.Match(ctx, a, nil, adminMay)
		return result.Matches, result.Error
	}
}

// attributes returns the API server's attributes of a request.
func attributes(k *objects.Kind, q *Query) (*admission.VersionedAttributes, error) {
	object, old := k.RuntimeObject(q.Object), k.RuntimeObject(q.Old)
	var options runtime.Object = &metav1.CreateOptions{}
	switch q.Operation {
	case admissionv1.Update:
		options = &metav1.UpdateOptions{}
	case admissionv1.Delete:
		options = &metav1.DeleteOptions{}
	}
	gvr := schema.GroupVersionResource{Group: k.Resource.Group, Version: k.Resource.Version, Resource: k.Resource.Resource}
	a := admission.NewAttributesRecord(object, old, k.GroupVersionKind, k.NamespaceOf(q.Object, q.Old), objects.NameOf(q.Object, q.Old), gvr, "",
		admission.Operation(q.Operation), options, q.DryRun, q.user.orAdmin().attributes())
	return admission.NewVersionedAttributes(a, k.GroupVersionKind, admission.NewObjectInterfacesFromScheme(objects.Builtins()))
}

// unmatched returns the answer if a matchCondition cannot be evaluated under failurePolicy Fail: the API server rejects
// the request without calling the webhook. Under Ignore it skips the webhook.
func unmatched(w *Webhook, err error) *Answer {
	return &Answer{Message: fmt.Sprintf("a matchCondition of webhook %q: %v", w.Name, err)}
}
