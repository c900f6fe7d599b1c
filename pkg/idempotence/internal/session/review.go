// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Query is one API request, as far as a webhook sees it.
type Query struct {
	Version   string // of the review; empty means the first version that the webhook declares
	Operation admissionv1.Operation
	Object    *objects.Object
	Old       *objects.Object
	DryRun    bool
	Raw       []byte // sent instead of Object.Raw
	// Nameless means that the object had no name when the API server received it. The request to a webhook then has no
	// name, even if another webhook has set the name of the object since.
	Nameless bool
	UID      types.UID // empty for a new one
	user     *User     // see Session.User
}

// sent returns the document of the request, or nil.
func (q *Query) sent() json.RawMessage {
	switch {
	case q.Raw != nil:
		return q.Raw
	case q.Object != nil:
		return q.Object.Raw
	}
	return nil
}

// review encodes the AdmissionReview of a call.
func (q *Query) review(k *objects.Kind, uid types.UID) []byte {
	var old []byte
	if q.Old != nil {
		old = q.Old.Raw
	}
	out := make([]byte, 0, 1024+len(q.sent())+len(old)+len(q.user.orAdmin().encoded))
	out = append(out, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/`+q.Version+`","request":{"uid":"`...)
	out = append(out, uid...)
	gvk := fmt.Sprintf(`{"group":%q,"version":%q,"kind":%q}`, k.Group, k.Version, k.Kind)
	gvr := fmt.Sprintf(`{"group":%q,"version":%q,"resource":%q}`, k.Resource.Group, k.Resource.Version, k.Resource.Resource)
	out = append(out, `","kind":`+gvk+`,"resource":`+gvr+`,"requestKind":`+gvk+`,"requestResource":`+gvr...)
	if name := objects.NameOf(q.Object, q.Old); name != "" && !q.Nameless {
		out = append(append(out, `,"name":`...), tree.Encode(name)...)
	}
	if namespace := k.NamespaceOf(q.Object, q.Old); namespace != "" {
		out = append(append(out, `,"namespace":`...), tree.Encode(namespace)...)
	}
	out = append(out, `,"operation":"`+string(q.Operation)+`","userInfo":`...)
	out = append(out, q.user.orAdmin().encoded...)
	out = appendDocument(append(out, `,"object":`...), q.sent())
	out = appendDocument(append(out, `,"oldObject":`...), old)
	out = strconv.AppendBool(append(out, `,"dryRun":`...), q.DryRun)
	options := map[admissionv1.Operation]string{admissionv1.Create: "CreateOptions", admissionv1.Update: "UpdateOptions", admissionv1.Delete: "DeleteOptions"}[q.Operation]
	return append(out, `,"options":{"kind":"`+options+`","apiVersion":"meta.k8s.io/v1"}}}`+"\n"...)
}

func appendDocument(dst, doc []byte) []byte {
	if doc == nil {
		return append(dst, "null"...)
	}
	return append(dst, doc...)
}
