// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/base64"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/patch"
)

// AppendValidating appends to dst the AdmissionReview that answers req with d, for a
// validating webhook. It ends in a newline. The bytes depend on the arguments alone.
func AppendValidating(dst []byte, req *Request, d *Decision) []byte {
	return appendReview(dst, req, d, nil)
}

// AppendMutating is [AppendValidating] for a mutating webhook. The patch and its patchType
// are written together or not at all: an empty patch and the patch of a denial are left out,
// since even a patch without effect can make the API server reinvoke other webhooks.
func AppendMutating(dst []byte, req *Request, d *Decision, p patch.Patch) []byte {
	if !d.Allowed() {
		p = nil
	}
	return appendReview(dst, req, d, p)
}

func appendReview(dst []byte, req *Request, d *Decision, p patch.Patch) []byte {
	dst = append(dst, `{"kind":"AdmissionReview","apiVersion":"`...)
	dst = append(dst, req.Version.APIVersion()...)
	dst = append(dst, `","response":{"uid":`...)
	dst = appendJSON(dst, req.UID)
	if d.Allowed() {
		dst = append(dst, `,"allowed":true`...)
	} else {
		dst = append(dst, `,"allowed":false,"status":`...)
		dst = appendJSON(dst, d.denial)
	}
	if len(p) > 0 {
		dst = append(dst, `,"patch":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, p.AppendJSON(nil))
		dst = append(dst, `","patchType":"JSONPatch"`...)
	}
	if len(d.auditAnnotate) > 0 {
		dst = append(dst, `,"auditAnnotations":`...)
		dst = appendJSON(dst, d.auditAnnotate)
	}
	if len(d.warnings) > 0 {
		dst = append(dst, `,"warnings":`...)
		dst = appendJSON(dst, d.warnings)
	}
	return append(dst, "}}\n"...)
}

// appendJSON encodes strings, lists and maps of them, and statuses: none of which can fail.
func appendJSON[T ~string | []string | map[string]string | *metav1.Status](dst []byte, v T) []byte {
	encoded, _ := json.Marshal(v)
	return append(dst, encoded...)
}
