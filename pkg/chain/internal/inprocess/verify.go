// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	webhookrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	kjson "sigs.k8s.io/json"
)

// reviewDecoder decodes AdmissionReviews as the API server's webhook client does.
var reviewDecoder = func() runtime.Decoder {
	s := runtime.NewScheme()
	utilruntime.Must(admissionv1.AddToScheme(s))
	utilruntime.Must(admissionv1beta1.AddToScheme(s))
	return serializer.NewCodecFactory(s).LegacyCodec(admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion)
}()

// An Exchange is the last attempt of a webhook call: the request and its response.
type Exchange struct {
	Webhook           string
	Mutating          bool
	Attempts          int
	Request, Response []byte
	Status            int
	Err               error // of the transport
}

// A Verification is the result of the API server's check of a webhook response.
type Verification struct {
	Problem    string // why the response cannot be used; empty if it can
	Denied     bool
	Message    string // of the denial
	Operations int    // in the patch
}

// Verify checks a response as the API server does.
func Verify(c Exchange) Verification {
	switch {
	case c.Attempts == 0:
		return Verification{Problem: "the call could not be sent"}
	case c.Err != nil:
		return Verification{Problem: "failed to call webhook: " + c.Err.Error()}
	case c.Status < 200 || c.Status > 206:
		return Verification{Problem: fmt.Sprintf("failed to call webhook: the server answered with status %d", c.Status)}
	}
	var sent struct {
		APIVersion string `json:"apiVersion"`
		Request    struct {
			UID types.UID `json:"uid"`
		} `json:"request"`
	}
	if err := json.Unmarshal(c.Request, &sent); err != nil {
		return Verification{Problem: err.Error()}
	}
	var into runtime.Object = &admissionv1.AdmissionReview{}
	if sent.APIVersion == admissionv1beta1.SchemeGroupVersion.String() {
		into = &admissionv1beta1.AdmissionReview{}
	}
	decoded, _, err := reviewDecoder.Decode(c.Response, nil, into)
	if err == nil && decoded != into {
		err = fmt.Errorf("the answer is a %T", decoded)
	}
	if err != nil {
		return Verification{Problem: "failed to call webhook: " + err.Error()}
	}
	answer, err := webhookrequest.VerifyAdmissionResponse(sent.Request.UID, c.Mutating, into)
	switch {
	case err != nil:
		return Verification{Problem: "received invalid webhook response: " + err.Error()}
	case !answer.Allowed:
		return Verification{Denied: true, Message: webhookerrors.ToStatusErr(c.Webhook, answer.Result).Error()}
	case !c.Mutating || len(answer.Patch) == 0:
		return Verification{}
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		return Verification{Problem: "received undecodable patch in webhook response: " + err.Error()}
	}
	return Verification{Operations: len(patch)}
}

// ResponsePatch returns the JSON Patch of a response, even if the response cannot be used. It returns nil if there is none.
func ResponsePatch(response []byte) json.RawMessage {
	var review struct {
		Response struct {
			Patch []byte `json:"patch"`
		} `json:"response"`
	}
	if len(response) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(response, &review) != nil || !json.Valid(review.Response.Patch) {
		return nil
	}
	return review.Response.Patch
}
