// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/admitkit/admitkit/pkg/reads"
)

// CachedPods returns a reader of Pods. It reads a Pod from the API server if the cache does not contain it yet. The
// cache contains all Pods of the cluster.
func (s *Sources) CachedPods() (*reads.Reader[*corev1.Pod], error) {
	lister := s.factory().Core().V1().Pods().Lister()
	return reader(s, "", reads.Options[*corev1.Pod]{
		Resource: "pods",
		Cached:   func(namespace, name string) (*corev1.Pod, error) { return lister.Pods(namespace).Get(name) },
		Live: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return s.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// Nodes returns a reader of Nodes. It reads a Node from the API server if the cache does not contain it yet.
func (s *Sources) Nodes() (*reads.Reader[*corev1.Node], error) {
	lister := s.factory().Core().V1().Nodes().Lister()
	return reader(s, "", reads.Options[*corev1.Node]{
		Resource: "nodes",
		Cached:   func(_, name string) (*corev1.Node, error) { return lister.Get(name) },
		Live: func(ctx context.Context, _, name string) (*corev1.Node, error) {
			return s.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// PersistentVolumeClaims returns a lister of PersistentVolumeClaims.
func (s *Sources) PersistentVolumeClaims() corelisters.PersistentVolumeClaimLister {
	s.deps.Needs(cacheRule("", "persistentvolumeclaims"))
	return s.factory().Core().V1().PersistentVolumeClaims().Lister()
}

// PersistentVolumes returns a lister of PersistentVolumes.
func (s *Sources) PersistentVolumes() corelisters.PersistentVolumeLister {
	s.deps.Needs(cacheRule("", "persistentvolumes"))
	return s.factory().Core().V1().PersistentVolumes().Lister()
}

// CSIDrivers returns a lister of CSIDrivers.
func (s *Sources) CSIDrivers() storagelisters.CSIDriverLister {
	s.deps.Needs(cacheRule("storage.k8s.io", "csidrivers"))
	return s.factory().Storage().V1().CSIDrivers().Lister()
}
