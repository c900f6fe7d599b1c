// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func TestAHookAnswersWithASurgicalPatch(t *testing.T) {
	hook := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		req.Object.Labels = map[string]string{"seen": "yes"}
		req.Warn("labelled")
		return req.Audit("labelled", "yes")
	})
	for _, version := range versions {
		c := call{version: version, object: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","future":1}}`}
		a := post(t, hook, "?timeout=5s", "application/json; charset=utf-8", bytes.NewReader(c.body()))
		// the patch is [{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}]
		want(t, string(a.body), fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/%s","response":{"uid":"u-1","allowed":true,`+
			`"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7InNlZW4iOiJ5ZXMifX1d","patchType":"JSONPatch",`+
			`"auditAnnotations":{"labelled":"yes"},"warnings":["labelled"]}}`, version)+"\n")
	}
}
