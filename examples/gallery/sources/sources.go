// SPDX-License-Identifier: Apache-2.0

// Package sources gives the hooks of the gallery access to objects of the cluster, such as Namespaces and
// StorageClasses.
package sources

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/admitkit/admitkit/pkg/access"
	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/reads"
)

// Sources has a method for each kind of object that the hooks read. Each method declares the permissions that its
// requests need. A method that reads from a cache also requests the informer of the kind. The program is ready only
// when the caches of all informers have synced.
type Sources struct {
	deps      *program.Deps
	client    kubernetes.Interface
	watches   *reads.Watches // of the informers
	informers informers.SharedInformerFactory
	run       sync.Once // hands the informers to the program

	namespaces func() (*reads.Reader[*corev1.Namespace], error) // the same reader for all hooks
}

// New returns sources whose informers the program runs. If no method requests an informer, the program starts without a
// cluster.
func New(deps *program.Deps) (*Sources, error) {
	config := rest.CopyConfig(deps.Config)
	config.QPS = -1 // readers and authorizers limit their requests themselves
	watches, err := reads.NewWatches(deps.Metrics)
	if err != nil {
		return nil, err
	}
	config.Wrap(watches.Transport)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s := &Sources{deps: deps, client: client, watches: watches, informers: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))}
	s.namespaces = sync.OnceValues(s.newNamespaces)
	return s, nil
}

// withoutManagedFields removes the managed fields from the objects of the caches. No hook reads them, and they may be
// most of an object.
func withoutManagedFields(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

// reader returns a reader of objects that are in a cache. It declares the permissions that the reader needs, and counts
// its reads.
func reader[T any](s *Sources, group string, o reads.Options[T]) (*reads.Reader[T], error) {
	s.deps.Needs(reads.Rule(group, o.Resource))
	o.Stale, o.Metrics = s.watches.Cut(group, o.Resource), s.deps.Metrics
	return reads.New(o)
}

// cacheRule returns the permissions of an informer without a reader. Only a reader also needs the permission get.
func cacheRule(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"list", "watch"}}
}

// factory returns the informer factory. The caller must request an informer from it.
func (s *Sources) factory() informers.SharedInformerFactory {
	s.run.Do(func() { s.deps.RunInformers(s.informers) })
	return s.informers
}

// Metrics returns the registry of the program's metrics.
func (s *Sources) Metrics() prometheus.Registerer { return s.deps.Metrics }

// Namespaces returns the reader of Namespaces, which all hooks share. It reads a Namespace from the API server if the
// cache does not contain it yet.
func (s *Sources) Namespaces() (*reads.Reader[*corev1.Namespace], error) { return s.namespaces() }

func (s *Sources) newNamespaces() (*reads.Reader[*corev1.Namespace], error) {
	informer := s.factory().Core().V1().Namespaces()
	informer.Informer() // so that the factory starts it
	return reader(s, "", reads.Options[*corev1.Namespace]{
		Resource: "namespaces",
		Cached:   func(_, name string) (*corev1.Namespace, error) { return informer.Lister().Get(name) },
		Live: func(ctx context.Context, _, name string) (*corev1.Namespace, error) {
			return s.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// RuntimeClasses returns a reader of RuntimeClasses. It reads a RuntimeClass from the API server if the cache does not
// contain it yet.
func (s *Sources) RuntimeClasses() (*reads.Reader[*nodev1.RuntimeClass], error) {
	informer := s.factory().Node().V1().RuntimeClasses()
	informer.Informer() // so that the factory starts it
	return reader(s, nodev1.GroupName, reads.Options[*nodev1.RuntimeClass]{
		Resource: "runtimeclasses",
		Cached:   func(_, name string) (*nodev1.RuntimeClass, error) { return informer.Lister().Get(name) },
		Live: func(ctx context.Context, _, name string) (*nodev1.RuntimeClass, error) {
			return s.client.NodeV1().RuntimeClasses().Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// ServiceAccounts returns a reader of ServiceAccounts. It reads a ServiceAccount from the API server if the cache does not
// contain it yet.
func (s *Sources) ServiceAccounts() (*reads.Reader[*corev1.ServiceAccount], error) {
	return reader(s, "", ServiceAccounts(s.client, s.factory()))
}

// LimitRanges returns a reader of all LimitRanges of a namespace, as the function LimitRanges does.
func (s *Sources) LimitRanges() (*reads.Reader[[]*corev1.LimitRange], error) {
	return reader(s, "", LimitRanges(s.client, s.factory()))
}

// StorageClasses returns a lister of StorageClasses.
func (s *Sources) StorageClasses() storagelisters.StorageClassLister {
	s.deps.Needs(cacheRule("storage.k8s.io", "storageclasses"))
	return s.factory().Storage().V1().StorageClasses().Lister()
}

// IngressClasses returns a lister of IngressClasses.
func (s *Sources) IngressClasses() networkinglisters.IngressClassLister {
	s.deps.Needs(cacheRule("networking.k8s.io", "ingressclasses"))
	return s.factory().Networking().V1().IngressClasses().Lister()
}

// PriorityClasses returns a lister of PriorityClasses.
func (s *Sources) PriorityClasses() schedulinglisters.PriorityClassLister {
	s.deps.Needs(cacheRule("scheduling.k8s.io", "priorityclasses"))
	return s.factory().Scheduling().V1().PriorityClasses().Lister()
}

// Pods returns a reader that asks the API server for each Pod. It has no cache: a cache of all Pods is large, and the
// hooks that use this reader read Pods rarely.
func (s *Sources) Pods() (*reads.Reader[*corev1.Pod], error) {
	s.deps.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}})
	return reads.New(reads.Options[*corev1.Pod]{
		Resource: "pods",
		Cached: func(_, name string) (*corev1.Pod, error) {
			return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
		},
		Live: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return s.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Metrics: s.deps.Metrics,
	})
}

// Users returns an authorizer that asks the API server what users may do.
func (s *Sources) Users() (*access.Authorizer, error) {
	s.deps.Needs(access.Rule())
	return access.New(access.Options{Client: s.client.AuthorizationV1()})
}

// Ingresses returns a cache of the Ingresses of all namespaces with these indexes.
func (s *Sources) Ingresses(indexes cache.Indexers) (cache.Indexer, error) {
	s.deps.Needs(cacheRule("networking.k8s.io", "ingresses"))
	informer := s.factory().Networking().V1().Ingresses().Informer()
	return informer.GetIndexer(), informer.AddIndexers(indexes)
}

// PodsOfNamespaces returns a lister of Pods by namespace. It has no cache, because a cache of all Pods of a cluster is
// large.
func (s *Sources) PodsOfNamespaces() *PodLister {
	s.deps.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	return &PodLister{s.client, semaphore.NewWeighted(mostLists)}
}

const (
	// mostListed is the maximum number of Pods that a PodLister returns. PodSecurity checks 3,000 of them.
	mostListed = 4000
	// mostLists is the maximum number of lists that are read at a time, because each can take much memory.
	mostLists = 2
)

// A PodLister lists the Pods of a namespace. Each call sends a request to the API server.
type PodLister struct {
	client kubernetes.Interface
	slots  *semaphore.Weighted
}

// ListPods returns the Pods of a namespace, but no more than 4,000.
func (l *PodLister) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	if err := l.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer l.slots.Release(1)
	list, err := l.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: mostListed})
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}
