// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/patch"
)

var (
	oddTexts = []string{"", " ", "\n", "no", "use v2 instead", "a\tb\x00c\x7f", "\xff\xfe", "é€😀", `"quoted" \ <html> & 'more'`, "\u2028\u0085", "two\nlines",
		strings.Repeat("long ", 60), strings.Repeat("x", 500), strings.Repeat("€", 5000)}
	oddCodes = []int32{0, 200, 204, 302, 399, 400, 403, 404, 409, 410, 418, 422, 429, 499, 500, 503, 599, 600, 999, 1000, -1, -1 << 31, 1<<31 - 1}
	oddWhys  = []metav1.StatusReason{"", " ", "PolicyViolation", "\xff", "two\nlines", metav1.StatusReasonInvalid, metav1.StatusReasonNotFound, metav1.StatusReasonGone}
	oddKeys  = []string{"", "k", "a/b", "example.com/k", "k.", "Pod-Policy_v1.2", "clé", "\xff", "a b", strings.Repeat("k", 63), strings.Repeat("k", 64)}
	oddPaths = []patch.Pointer{"", "/", "/a", "/metadata/annotations/example.com~1a~0b", "/spec/containers/-", "/\xff", "/<&>", "/\"\\\n"}
	oddUIDs  = []types.UID{"0df28fbd-5f5f-11e8-bc74-36e6bb280816", "u", `"\`, "<&>\u2028", "é€😀"}
)

// randomAnswer returns answer number n of a fixed random sequence: a request, a decision and a patch.
func randomAnswer(n uint64) (*Request, *Decision, patch.Patch) {
	r := rand.New(rand.NewPCG(n, 2))
	req := &Request{Version: pick(r, []Version{V1, V1beta1}), Metadata: Metadata{UID: pick(r, oddUIDs)}}
	d := Allow()
	if r.IntN(2) == 0 {
		d = Deny(randomStatus(r))
	}
	for range r.IntN(4) {
		d.Warn(pick(r, oddTexts))
	}
	if r.IntN(8) == 0 {
		for range 100 {
			d.Warn(fmt.Sprint(r.Uint64(), " ", pick(r, oddTexts)))
		}
	}
	for range r.IntN(6) {
		_ = d.Audit(pick(r, oddKeys), pick(r, oddTexts)) // a handler may ignore the error
	}
	var p patch.Patch
	for range r.IntN(4) {
		p = append(p, randomOperation(r))
	}
	return req, d, p
}

func randomStatus(r *rand.Rand) metav1.Status {
	status := metav1.Status{Code: pick(r, oddCodes), Reason: pick(r, oddWhys), Message: pick(r, oddTexts), Status: pick(r, []string{"", "Success", "Failure", "odd"})}
	if r.IntN(8) == 0 {
		status.Code = int32(r.Uint32())
	}
	if r.IntN(3) == 0 {
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		status.ListMeta = metav1.ListMeta{ResourceVersion: "7", Continue: pick(r, oddTexts)}
	}
	if r.IntN(2) == 0 {
		status.Details = &metav1.StatusDetails{Name: pick(r, oddTexts), Kind: "Pod", RetryAfterSeconds: int32(r.IntN(5)) - 2}
		for range r.IntN(3) {
			status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: pick(r, oddTexts)})
		}
	}
	return status
}

func randomOperation(r *rand.Rand) patch.Operation {
	op := patch.Operation{Op: pick(r, []patch.Op{patch.Add, patch.Remove, patch.Replace, patch.Move, patch.Copy, patch.Test}), Path: pick(r, oddPaths)}
	switch op.Op {
	case patch.Move, patch.Copy:
		op.From = pick(r, oddPaths)
	case patch.Add, patch.Replace, patch.Test:
		op.Value = json.RawMessage(pick(r, append([]string{""}, anyJSON...)))
	}
	return op
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
