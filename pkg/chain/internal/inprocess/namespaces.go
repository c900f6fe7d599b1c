// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	informersv1 "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/admitkit/admitkit/pkg/chain/internal/keyedlock"
)

// KnownNamespaces has the namespaces that the API server's code can look up. If none are given, every namespace exists.
// During a request for a Namespace, that Namespace has the labels of the stored object.
type KnownNamespaces struct {
	given map[string]*corev1.Namespace // by name; nil if every namespace exists

	mu      sync.RWMutex
	stored  map[string]*corev1.Namespace
	holders keyedlock.Locks
}

// NewKnownNamespaces returns the namespaces with these labels. If labels is nil, every namespace exists.
func NewKnownNamespaces(labels map[string]map[string]string) *KnownNamespaces {
	return &KnownNamespaces{given: namespacesOf(labels)}
}

func (k *KnownNamespaces) get(name string) *corev1.Namespace {
	k.mu.RLock()
	stored := k.stored[name]
	k.mu.RUnlock()
	if stored != nil {
		return stored
	}
	if k.given == nil {
		return NewNamespace(name, nil)
	}
	return k.given[name]
}

// Hold makes each lookup of namespace.Name return namespace until release is called. Another Hold of the same name
// waits until then.
func (k *KnownNamespaces) Hold(namespace *corev1.Namespace) (release func()) {
	unlock := k.holders.Lock(namespace.Name, false)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stored == nil {
		k.stored = map[string]*corev1.Namespace{}
	}
	k.stored[namespace.Name] = namespace
	return func() {
		defer unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.stored, namespace.Name)
	}
}

// Provide makes the Namespace informer of a factory return these namespaces.
func (k *KnownNamespaces) Provide(factory informers.SharedInformerFactory) {
	factory.InformerFor(&corev1.Namespace{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		informer := informersv1.NewNamespaceInformer(client, resync, cache.Indexers{})
		return namespaceInformer{informer, namespaceIndexer{informer.GetIndexer(), k}}
	})
}

type namespaceInformer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func (i namespaceInformer) GetIndexer() cache.Indexer { return i.indexer }

func (i namespaceInformer) GetStore() cache.Store { return i.indexer }

// namespaceIndexer is the indexer that listers read.
type namespaceIndexer struct {
	cache.Indexer
	known *KnownNamespaces
}

func (i namespaceIndexer) GetByKey(name string) (any, bool, error) {
	if n := i.known.get(name); n != nil {
		return n, true, nil
	}
	return nil, false, nil
}

// namespacesOf returns Namespaces with these labels. It returns nil if labels is nil.
func namespacesOf(labels map[string]map[string]string) map[string]*corev1.Namespace {
	if labels == nil {
		return nil
	}
	namespaces := map[string]*corev1.Namespace{}
	for name, own := range labels {
		namespaces[name] = NewNamespace(name, own)
	}
	return namespaces
}

// NewNamespace returns a Namespace with these labels and the label kubernetes.io/metadata.name.
func NewNamespace(name string, labels map[string]string) *corev1.Namespace {
	all := map[string]string{}
	maps.Copy(all, labels)
	all[corev1.LabelMetadataName] = name
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}
}
