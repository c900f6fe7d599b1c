// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/admitkit/admitkit/pkg/reads"
)

// notCached is the name of objects that exist but are not in the caches of the informers. Objects with the name gone
// do not exist at all.
const notCached = "new"

// unreadable is the name of a Namespace whose objects the API server fails to return, with the error errUnreadable.
const unreadable = "unreadable"

var errUnreadable = errors.New("no connection to etcd")

// A cluster gives the originals and the hooks access to the objects that they read. It is also the initializer of the
// originals.
type cluster struct {
	client     kubernetes.Interface
	factory    informers.SharedInformerFactory
	authorizer authorizer.Authorizer // of the originals
}

func newCluster(t *testing.T, namespaces []*corev1.Namespace, objects []runtime.Object) cluster {
	t.Helper()
	client := fake.NewClientset(objects...)
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == unreadable, nil, errUnreadable
	})
	for _, ns := range namespaces {
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	failToRead(client)
	c := cluster{client, informers.NewSharedInformerFactory(client, 0), authorizerFor(objects)}
	simulate(client, c.authorizer)
	return c
}

// sync fills the caches of the informers, except for the objects with the name notCached and those in the Namespace with
// this name.
func (c cluster) sync(t *testing.T) {
	t.Helper()
	c.start(t)
	core := c.factory.Core().V1()
	for _, informer := range []cache.SharedIndexInformer{
		core.Namespaces().Informer(), core.LimitRanges().Informer(), core.ServiceAccounts().Informer(), core.Pods().Informer(), c.factory.Node().V1().RuntimeClasses().Informer(),
	} {
		for _, object := range informer.GetIndexer().List() {
			if o, ok := object.(metav1.Object); ok && (o.GetName() == notCached || o.GetNamespace() == notCached) {
				if err := informer.GetIndexer().Delete(object); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// start fills the caches of the informers.
func (c cluster) start(t *testing.T) {
	t.Helper()
	c.factory.Start(t.Context().Done())
	c.factory.WaitForCacheSync(t.Context().Done())
}

func (c cluster) Initialize(plugin admission.Interface) {
	if p, ok := plugin.(initializer.WantsEffectiveVersion); ok { // before the others, as in the API server
		p.InspectEffectiveVersion(compatibility.DefaultBuildEffectiveVersion())
	}
	if p, ok := plugin.(initializer.WantsExternalKubeClientSet); ok {
		p.SetExternalKubeClientSet(c.client)
	}
	if p, ok := plugin.(initializer.WantsFeatures); ok { // before the informers, because the features decide which of them are used
		p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	}
	if p, ok := plugin.(initializer.WantsExternalKubeInformerFactory); ok {
		p.SetExternalKubeInformerFactory(c.factory)
	}
	if p, ok := plugin.(initializer.WantsAuthorizer); ok {
		p.SetAuthorizer(authorizer.AuthorizerFunc(c.authorize))
	}
	if p, ok := plugin.(initializer.WantsRESTMapper); ok {
		p.SetRESTMapper(c.kinds())
	}
}

// authorize decides for the originals. For the audience of a token, it sends a SubjectAccessReview, as the hook does.
func (c cluster) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() != tokenVerb {
		return c.authorizer.Authorize(ctx, a)
	}
	from := userInfo(a.GetUser())
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: from.Username, UID: from.UID, Groups: from.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
			Namespace: a.GetNamespace(), Name: a.GetName(),
		},
	}}
	review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", err
	case review.Status.Allowed:
		return authorizer.DecisionAllow, review.Status.Reason, nil
	case review.Status.EvaluationError != "":
		err = errors.New(review.Status.EvaluationError)
	}
	return authorizer.DecisionNoOpinion, review.Status.Reason, err
}

func (c cluster) namespaces(t *testing.T) *reads.Reader[*corev1.Namespace] {
	t.Helper()
	informer := c.factory.Core().V1().Namespaces()
	informer.Informer() // so that the factory starts it
	return reader(t, "namespaces", informer.Lister().Get, func(ctx context.Context, name string) (*corev1.Namespace, error) {
		return c.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	})
}

func (c cluster) runtimeClasses(t *testing.T) *reads.Reader[*nodev1.RuntimeClass] {
	t.Helper()
	informer := c.factory.Node().V1().RuntimeClasses()
	informer.Informer() // so that the factory starts it
	return reader(t, "runtimeclasses", informer.Lister().Get, func(ctx context.Context, name string) (*nodev1.RuntimeClass, error) {
		return c.client.NodeV1().RuntimeClasses().Get(ctx, name, metav1.GetOptions{})
	})
}

func reader[T any](t *testing.T, resource string, cached func(name string) (T, error), live func(ctx context.Context, name string) (T, error)) *reads.Reader[T] {
	t.Helper()
	r, err := reads.New(reads.Options[T]{
		Resource: resource,
		Cached:   func(_, name string) (T, error) { return cached(name) },
		Live:     func(ctx context.Context, _, name string) (T, error) { return live(ctx, name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
