// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// requestKey is the key in the user's extra whose value is the id of the request.
	requestKey = "chain.admitkit/request"

	// markerReason is the reason in the denial of a marker webhook.
	markerReason metav1.StatusReason = "ChainConfigurationsEnforced"
)

// An envelope has the fields of an AdmissionReview that the proxy reads.
type envelope struct {
	APIVersion string `json:"apiVersion"`
	Request    struct {
		UID    types.UID       `json:"uid"`
		Object json.RawMessage `json:"object"`
	} `json:"request"`
}

// openReview decodes a review. It returns a zero envelope for a body that is not a review, such as the API server can
// send after a redirect.
func openReview(review []byte) envelope {
	var e envelope
	_ = json.Unmarshal(review, &e)
	return e
}

// onlyFor returns a matchCondition that selects requests by their id. The CEL expression test decides, and has the
// id as its variable v. A false condition skips the webhook, even if another condition has an error.
func onlyFor(test string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: requestKey, Expression: fmt.Sprintf(
		"has(request.userInfo.extra) && %[1]q in request.userInfo.extra && request.userInfo.extra[%[1]q].exists(v, %[2]s)", requestKey, test)}
}

// Administrator is the user of requests that do not name one.
var Administrator = authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}}

// withID returns the user with the id of a request in its extra.
func withID(user authenticationv1.UserInfo, id string) authenticationv1.UserInfo {
	if user.Username == "" && user.UID == "" && len(user.Groups) == 0 && len(user.Extra) == 0 {
		user = Administrator
	}
	extra := map[string]authenticationv1.ExtraValue{requestKey: {id}}
	for key, values := range user.Extra {
		extra[key] = values
	}
	user.Extra = extra
	return user
}

// takeID removes the id of the request from a review, and returns both. The first match in a review is in the user's
// extra: objects come later, and quotes in a string are escaped.
func takeID(review []byte) (id string, without []byte) {
	const entry = `"` + requestKey + `":["`
	from := bytes.Index(review, []byte(entry))
	if from < 0 {
		return "", review
	}
	value := review[from+len(entry):]
	length := bytes.IndexByte(value, '"')
	if length < 0 || !bytes.HasPrefix(value[length:], []byte(`"]`)) {
		return "", review
	}
	id = string(value[:length])
	before, after := review[:from], value[length+2:]
	const alone = `"extra":{`
	switch {
	case bytes.HasSuffix(before, []byte(alone)) && bytes.HasPrefix(after, []byte("}")):
		before, after = bytes.TrimSuffix(before[:len(before)-len(alone)], []byte(",")), after[1:]
	case bytes.HasSuffix(before, []byte(",")):
		before = before[:len(before)-1]
	default:
		after = bytes.TrimPrefix(after, []byte(","))
	}
	return id, append(before[:len(before):len(before)], after...)
}

// answerMarker denies the review with markerReason, which shows that the marker configuration is enforced.
func answerMarker(w http.ResponseWriter, body []byte) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		panic(http.ErrAbortHandler)
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Reason: markerReason}}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encodeJSON(review))
}
