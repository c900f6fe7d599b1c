// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/wire"
	"github.com/admitkit/admitkit/pkg/patch"
)

// AppendValidating appends to dst a validating webhook's AdmissionReview that answers req with d. It ends
// in a newline. The bytes depend on the arguments alone.
func AppendValidating(dst []byte, req *Request, d *Decision) []byte {
	return appendReview(dst, req, d, nil)
}

// AppendMutating is [AppendValidating] for a mutating webhook. It writes patch and patchType together or not at
// all. It omits an empty patch and the patch of a denial, because even a patch without effect can make
// the API server reinvoke other webhooks.
func AppendMutating(dst []byte, req *Request, d *Decision, p patch.Patch) []byte {
	if !d.Allowed() {
		p = nil
	}
	return appendReview(dst, req, d, p)
}

func appendReview(dst []byte, req *Request, d *Decision, p patch.Patch) []byte {
	dst = append(dst, `{"kind":"`+wire.Kind+`","apiVersion":"`+wire.Group+`/`...)
	dst = append(dst, req.Version...)
	dst = append(dst, `","response":{"uid":`...)
	dst = appendString(dst, string(req.UID))
	if d.Allowed() {
		dst = append(dst, `,"allowed":true`...)
	} else {
		dst = append(dst, `,"allowed":false,"status":`...)
		dst = appendStatus(dst, d.denial)
	}
	if len(p) > 0 {
		dst = append(dst, `,"patch":"`...)
		dst = appendBase64(dst, p)
		dst = append(dst, `","patchType":"JSONPatch"`...)
	}
	if len(d.auditAnnotate) > 0 {
		dst = append(dst, `,"auditAnnotations":{`...)
		for i, key := range slices.Sorted(maps.Keys(d.auditAnnotate)) {
			dst = appendString(appendComma(dst, i), key)
			dst = appendString(append(dst, ':'), d.auditAnnotate[key])
		}
		dst = append(dst, '}')
	}
	if len(d.warnings) > 0 {
		dst = append(dst, `,"warnings":[`...)
		for i, text := range d.warnings {
			dst = appendString(appendComma(dst, i), text)
		}
		dst = append(dst, ']')
	}
	return append(dst, "}}\n"...)
}

func appendComma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

// appendBase64 appends the patch and then its encoding to dst, and moves the encoding over the patch. It
// needs no memory besides dst.
func appendBase64(dst []byte, p patch.Patch) []byte {
	start := len(dst)
	dst = p.AppendJSON(dst)
	end := len(dst)
	dst = base64.StdEncoding.AppendEncode(dst, dst[start:end])
	return append(dst[:start], dst[end:]...)
}

// appendStatus appends a status exactly as encoding/json writes it.
func appendStatus(dst []byte, s *metav1.Status) []byte {
	if s.Details != nil || s.ListMeta != (metav1.ListMeta{}) || s.TypeMeta != (metav1.TypeMeta{}) {
		encoded, _ := json.Marshal(s) // cannot fail: strings and numbers
		return append(dst, encoded...)
	}
	dst = append(dst, `{"metadata":{},"status":`...)
	dst = appendString(dst, s.Status)
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, s.Message)
	dst = append(dst, `,"reason":`...)
	dst = appendString(dst, string(s.Reason))
	dst = append(dst, `,"code":`...)
	dst = strconv.AppendInt(dst, int64(s.Code), 10)
	return append(dst, '}')
}

// appendString appends a string exactly as encoding/json writes it.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if !plain[s[i]] {
			encoded, _ := json.Marshal(s) // a string always marshals
			return append(dst, encoded...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// plain marks the bytes that encoding/json never escapes.
var plain = func() (table [256]bool) {
	for b := byte(' '); b < 0x7f; b++ {
		table[b] = b != '"' && b != '\\' && b != '<' && b != '>' && b != '&'
	}
	return table
}()
