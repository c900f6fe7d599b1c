// SPDX-License-Identifier: Apache-2.0

package imagepolicywebhook

import (
	"context"
	"time"

	"k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestTimeout limits one request. It is that of the original. The call's own deadline is usually earlier.
const requestTimeout = 30 * time.Second

// client returns a function that sends reviews to the service of a kubeconfig.
func client(kubeconfig string) (func(context.Context, v1alpha1.ImageReviewSpec) (v1alpha1.ImageReviewStatus, error), error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NegotiatedSerializerWrapper(runtime.SerializerInfo{Serializer: codec})
	config.Timeout = requestTimeout
	config.QPS = -1 // the number of questions at a time is limited
	to, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, spec v1alpha1.ImageReviewSpec) (v1alpha1.ImageReviewStatus, error) {
		review := &v1alpha1.ImageReview{Spec: spec}
		result := to.Post().Body(review).Do(ctx)
		if err := result.Error(); err != nil { // which has the service's own words, if it answered with a Status
			return review.Status, err
		}
		err := result.Into(review)
		return review.Status, err
	}, nil
}
