// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/admitkit/admitkit/pkg/reads"
)

// ServiceAccounts returns the options of a reader of ServiceAccounts. It requests an informer from the factory, which the
// caller must start. If the cache does not contain a ServiceAccount yet, the reader asks the API server.
func ServiceAccounts(client kubernetes.Interface, factory informers.SharedInformerFactory) reads.Options[*corev1.ServiceAccount] {
	informer := factory.Core().V1().ServiceAccounts()
	informer.Informer() // so that the factory starts it
	return reads.Options[*corev1.ServiceAccount]{
		Resource: "serviceaccounts",
		Cached: func(namespace, name string) (*corev1.ServiceAccount, error) {
			return informer.Lister().ServiceAccounts(namespace).Get(name)
		},
		Live: func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
			return client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}
}

// noLimitRangesFor is how long a reader of LimitRanges remembers that a namespace has none, as the original does.
const noLimitRangesFor = 30 * time.Second

// LimitRanges returns the options of a reader of all LimitRanges of a namespace, in the order of their names. Its Get
// ignores the name, so pass "*". It returns reads.ErrNotFound if the list is empty. The function requests an informer from
// the factory, which the caller must start. If the cache contains no LimitRange of the namespace, the reader asks the API
// server. If the API server has none either, the reader does not ask again for 30 seconds.
func LimitRanges(client kubernetes.Interface, factory informers.SharedInformerFactory) reads.Options[[]*corev1.LimitRange] {
	informer := factory.Core().V1().LimitRanges()
	informer.Informer() // so that the factory starts it
	return reads.Options[[]*corev1.LimitRange]{
		Resource: "limitranges",
		Cached: func(namespace, _ string) ([]*corev1.LimitRange, error) {
			found, err := informer.Lister().LimitRanges(namespace).List(labels.Everything())
			if err != nil {
				return nil, err
			}
			return byName(found)
		},
		Live: func(ctx context.Context, namespace, _ string) ([]*corev1.LimitRange, error) {
			list, err := client.CoreV1().LimitRanges(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			var found []*corev1.LimitRange
			for i := range list.Items {
				found = append(found, &list.Items[i])
			}
			return byName(found)
		},
		NotFoundFor: noLimitRangesFor,
	}
}

// byName sorts the LimitRanges by name. For an empty list it returns a NotFound error.
func byName(found []*corev1.LimitRange) ([]*corev1.LimitRange, error) {
	if len(found) == 0 {
		return nil, apierrors.NewNotFound(corev1.Resource("limitranges"), "*")
	}
	slices.SortFunc(found, func(a, b *corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}
