// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	webhookrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"
)

// reviewSerializer reads AdmissionReviews as the client of the API server does.
var reviewSerializer = func() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	utilruntime.Must(admissionv1.AddToScheme(s))
	utilruntime.Must(admissionv1beta1.AddToScheme(s))
	codecs := serializer.NewCodecFactory(s)
	return serializer.NegotiatedSerializerWrapper(runtime.SerializerInfo{
		Serializer: codecs.LegacyCodec(admissionv1.SchemeGroupVersion, admissionv1beta1.SchemeGroupVersion),
	})
}()

// A reading is the API server's interpretation of a webhook response, computed with the API server's code.
type reading struct {
	allowed bool
	// patched is the document that the webhook was sent with the patch, if there is one; changed
	// reports whether that makes a difference.
	patched []byte
	changed bool
	denial  string
	// failure is why there is no usable answer; final, if no failurePolicy forgives that.
	failure error
	final   bool
}

func (c *observedCall) read() reading {
	sent := open(c.request)
	if c.ended.IsZero() || c.status == 0 {
		return reading{failure: fmt.Errorf("failed to call webhook: %w", c.silence())}
	}
	review, err := c.decode(sent.APIVersion)
	if err != nil {
		return reading{failure: fmt.Errorf("failed to call webhook: %w", err)}
	}
	answer, err := webhookrequest.VerifyAdmissionResponse(sent.Request.UID, c.target.mutating, review)
	if err != nil {
		return reading{failure: fmt.Errorf("received invalid webhook response: %w", err)}
	}
	if !answer.Allowed {
		return reading{denial: webhookerrors.ToStatusErr(c.target.webhook, answer.Result).Error()}
	}
	r := reading{allowed: true}
	if c.target.mutating && len(answer.Patch) > 0 {
		c.apply(&r, answer.Patch, answer.PatchType)
	}
	return r
}

// silence is why nothing was answered.
func (c *observedCall) silence() error {
	if c.ended.IsZero() || c.failure == "" {
		return context.DeadlineExceeded
	}
	return errors.New(c.failure)
}

// envelope is what is read of a review that the API server wrote.
type envelope struct {
	APIVersion string `json:"apiVersion"`
	Request    struct {
		UID    types.UID       `json:"uid"`
		Object json.RawMessage `json:"object"`
	} `json:"request"`
}

// open returns a zero envelope for a body that is no review, which a redirect can lead to.
func open(review []byte) envelope {
	var e envelope
	_ = json.Unmarshal(review, &e)
	return e
}

// object is what the webhook was sent, or nil.
func (c *observedCall) object() []byte {
	object := open(c.request).Request.Object
	if string(object) == "null" {
		return nil
	}
	return object
}

// decode has the client of the API server read the answer.
func (c *observedCall) decode(version string) (runtime.Object, error) {
	header := c.header.Clone()
	header.Del("Retry-After") // it has been waited for
	replay := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{
			Status: fmt.Sprintf("%d %s", c.status, http.StatusText(c.status)), StatusCode: c.status, Header: header,
			Body: io.NopCloser(bytes.NewReader(c.response)), ContentLength: int64(len(c.response)), Request: req,
		}, nil
	})
	base, err := url.Parse(c.target.original)
	if err != nil {
		return nil, err
	}
	client, err := rest.NewRESTClient(base, "", rest.ClientContentConfig{Negotiator: runtime.NewClientNegotiator(reviewSerializer, admissionv1.SchemeGroupVersion)},
		nil, &http.Client{Transport: replay, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // nothing is waited for
	defer cancel()
	var review runtime.Object = &admissionv1.AdmissionReview{}
	if version == admissionv1beta1.SchemeGroupVersion.String() {
		review = &admissionv1beta1.AdmissionReview{}
	}
	return review, client.Post().Do(ctx).Into(review)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// apply applies the patch as the API server does, as far as that needs no Go types.
func (c *observedCall) apply(r *reading, raw []byte, patchType admissionv1.PatchType) {
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		r.failure = fmt.Errorf("received undecodable patch in webhook response: %w", err)
		return
	}
	if len(patch) == 0 {
		return
	}
	object := c.object()
	if object == nil {
		r.fail(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", c.target.webhook))
		return
	}
	if patchType != admissionv1.PatchTypeJSONPatch {
		r.failure = fmt.Errorf("unsupported patch type %q", patchType)
		return
	}
	r.patched, err = patch.Apply(object)
	if err != nil {
		r.fail(err)
		return
	}
	r.changed = !jsonpatch.Equal(object, r.patched)
}

// patch is the JSON Patch of an answer, of one that cannot be used too.
func patch(answer []byte) json.RawMessage {
	var review struct {
		Response struct {
			Patch []byte `json:"patch"`
		} `json:"response"`
	}
	if len(answer) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(answer, &review) != nil || !json.Valid(review.Response.Patch) {
		return nil
	}
	return review.Response.Patch
}

// fail is for what no failurePolicy forgives.
func (r *reading) fail(err error) { r.failure, r.final = apierrors.NewInternalError(err), true }

// outcome is what the API server makes of a reading.
func (c *observedCall) outcome(r reading) Effect {
	switch {
	case r.failure != nil && !r.final && c.target.failurePolicy == admissionregistrationv1.Ignore:
		return FailedOpen
	case r.failure != nil:
		return Failed
	case !r.allowed:
		return Denied
	}
	return Allowed
}
