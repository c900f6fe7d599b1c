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

// requestTimeout limits one request, as in the original. The deadline of the call is usually earlier.
const requestTimeout = 30 * time.Second

// client returns a function that sends reviews to the service that the kubeconfig names.
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
	config.QPS = -1 // no limit here: package external limits the number of concurrent questions
	to, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, spec v1alpha1.ImageReviewSpec) (v1alpha1.ImageReviewStatus, error) {
		review := &v1alpha1.ImageReview{Spec: spec}
		result := to.Post().Body(review).Do(ctx)
		if err := result.Error(); err != nil { // it contains the service's message, if the service answered with a Status
			return review.Status, err
		}
		err := result.Into(review)
		return review.Status, err
	}, nil
}
