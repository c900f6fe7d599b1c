// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	webhookrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	"k8s.io/client-go/rest"
)

// reviewSerializer decodes AdmissionReviews as the API server's webhook client does.
var reviewSerializer = func() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	utilruntime.Must(admissionv1.AddToScheme(s))
	utilruntime.Must(admissionv1beta1.AddToScheme(s))
	codecs := serializer.NewCodecFactory(s)
	return serializer.NegotiatedSerializerWrapper(runtime.SerializerInfo{
		Serializer: codecs.LegacyCodec(admissionv1.SchemeGroupVersion, admissionv1beta1.SchemeGroupVersion),
	})
}()

// A Reading is the API server's interpretation of a webhook response, computed with the API server's code.
type Reading struct {
	Allowed bool
	// Patched is the object after the patch of the response, or nil without a patch. Changed reports whether it
	// differs from the object that the webhook received.
	Patched []byte
	Changed bool
	Denial  string
	// Failure is why the response cannot be used. Final is set if the request also fails under failurePolicy Ignore.
	Failure error
	Final   bool
}

// Read interprets the response of a call.
func (c *ObservedCall) Read() Reading {
	sent := openReview(c.Request)
	if c.Ended.IsZero() || c.Status == 0 {
		return Reading{Failure: fmt.Errorf("failed to call webhook: %w", c.noResponse())}
	}
	review, err := c.decode(sent.APIVersion)
	if err != nil {
		return Reading{Failure: fmt.Errorf("failed to call webhook: %w", err)}
	}
	answer, err := webhookrequest.VerifyAdmissionResponse(sent.Request.UID, c.Target.Mutating, review)
	if err != nil {
		return Reading{Failure: fmt.Errorf("received invalid webhook response: %w", err)}
	}
	if !answer.Allowed {
		return Reading{Denial: webhookerrors.ToStatusErr(c.Target.Webhook, answer.Result).Error()}
	}
	r := Reading{Allowed: true}
	if c.Target.Mutating && len(answer.Patch) > 0 {
		c.apply(&r, answer.Patch, answer.PatchType)
	}
	return r
}

// noResponse returns the error of a call without a response.
func (c *ObservedCall) noResponse() error {
	if c.Ended.IsZero() || c.Failure == "" {
		return context.DeadlineExceeded
	}
	return errors.New(c.Failure)
}

// Object returns the object that the webhook received, or nil.
func (c *ObservedCall) Object() []byte {
	object := openReview(c.Request).Request.Object
	if string(object) == "null" {
		return nil
	}
	return object
}

// decode decodes the response with the REST client that the API server uses.
func (c *ObservedCall) decode(version string) (runtime.Object, error) {
	header := c.header.Clone()
	header.Del("Retry-After") // the REST client would wait again
	replay := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{
			Status: fmt.Sprintf("%d %s", c.Status, http.StatusText(c.Status)), StatusCode: c.Status, Header: header,
			Body: io.NopCloser(bytes.NewReader(c.Response)), ContentLength: int64(len(c.Response)), Request: req,
		}, nil
	})
	base, err := url.Parse(c.Target.original)
	if err != nil {
		return nil, err
	}
	client, err := rest.NewRESTClient(base, "", rest.ClientContentConfig{Negotiator: runtime.NewClientNegotiator(reviewSerializer, admissionv1.SchemeGroupVersion)},
		nil, &http.Client{Transport: replay, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the response is replayed, so nothing blocks
	defer cancel()
	var review runtime.Object = &admissionv1.AdmissionReview{}
	if version == admissionv1beta1.SchemeGroupVersion.String() {
		review = &admissionv1beta1.AdmissionReview{}
	}
	return review, client.Post().Do(ctx).Into(review)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// apply records the object with the patch applied in r, or the failure if the patch cannot be applied. The API server
// also decodes the patched object into a Go type, which apply does not.
func (c *ObservedCall) apply(r *Reading, raw []byte, patchType admissionv1.PatchType) {
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		r.Failure = fmt.Errorf("received undecodable patch in webhook response: %w", err)
		return
	}
	if len(patch) == 0 {
		return
	}
	object := c.Object()
	if object == nil {
		r.fail(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", c.Target.Webhook))
		return
	}
	if patchType != admissionv1.PatchTypeJSONPatch {
		r.Failure = fmt.Errorf("unsupported patch type %q", patchType)
		return
	}
	r.Patched, err = patch.Apply(object)
	if err != nil {
		r.fail(err)
		return
	}
	r.Changed = !jsonpatch.Equal(object, r.Patched)
}

// fail records an error that fails the request even under failurePolicy Ignore.
func (r *Reading) fail(err error) { r.Failure, r.Final = apierrors.NewInternalError(err), true }
