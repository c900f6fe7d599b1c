// SPDX-License-Identifier: Apache-2.0

package chain

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

// reviewDecoder decodes as the client of webhooks does.
var reviewDecoder = func() runtime.Decoder {
	s := runtime.NewScheme()
	utilruntime.Must(admissionv1.AddToScheme(s))
	utilruntime.Must(admissionv1beta1.AddToScheme(s))
	return serializer.NewCodecFactory(s).LegacyCodec(admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion)
}()

// A verification is the API server's check of a webhook response.
type verification struct {
	problem    string // why it is of no use
	denied     bool
	message    string
	operations int
}

func (c *call) verify() verification {
	switch {
	case c.Attempts == 0:
		return verification{problem: errNeverSent.Error()}
	case c.err != nil:
		return verification{problem: "failed to call webhook: " + c.err.Error()}
	case c.Status < 200 || c.Status > 206:
		return verification{problem: fmt.Sprintf("failed to call webhook: the server answered with status %d", c.Status)}
	}
	var sent struct {
		APIVersion string `json:"apiVersion"`
		Request    struct {
			UID types.UID `json:"uid"`
		} `json:"request"`
	}
	if err := json.Unmarshal(c.Request, &sent); err != nil {
		return verification{problem: err.Error()}
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
		return verification{problem: "failed to call webhook: " + err.Error()}
	}
	answer, err := webhookrequest.VerifyAdmissionResponse(sent.Request.UID, c.Mutating, into)
	switch {
	case err != nil:
		return verification{problem: "received invalid webhook response: " + err.Error()}
	case !answer.Allowed:
		return verification{denied: true, message: webhookerrors.ToStatusErr(c.hook.GetName(), answer.Result).Error()}
	case !c.Mutating || len(answer.Patch) == 0:
		return verification{}
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		return verification{problem: "received undecodable patch in webhook response: " + err.Error()}
	}
	return verification{operations: len(patch)}
}

// answered takes the patch from the answer, if there is one.
func (c *call) answered() {
	var review struct {
		Response struct {
			Patch []byte `json:"patch"`
		} `json:"response"`
	}
	if len(c.Response) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(c.Response, &review) != nil {
		return
	}
	if json.Valid(review.Response.Patch) {
		c.Patch = review.Response.Patch
	}
}
