// SPDX-License-Identifier: Apache-2.0

package seats

import (
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

func TestMarkIsIdempotent(t *testing.T) {
	pod := func(edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "shop"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}}},
		}
		edit(p)
		return p
	}
	samples := []runtime.Object{
		pod(func(*corev1.Pod) {}),
		pod(func(p *corev1.Pod) { p.Labels = map[string]string{Mark: "other"} }),
		pod(func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/other"}} }),
	}
	subject := idempotence.Hooks(func() []*webhook.Hook { return Hooks(nil) })
	idempotence.Check(t, subject, idempotence.Options{Samples: samples, Objects: 5, Budget: 10 * time.Minute})
}

// A Pod that cannot wait is denied, and so is a Pod that would not wait because another webhook has removed the gate or
// the label.
func TestPodsThatDoNotWaitAreDenied(t *testing.T) {
	const gate = `"schedulingGates":[{"name":"` + Mark + `"}]`
	for _, row := range []struct {
		hook               int
		labels, spec, want string
	}{
		{0, ``, `"nodeName":"node-1"`, "spec.nodeName: Forbidden: the Pod must wait for a seat"},
		{1, `"` + Mark + `":""`, ``, "another webhook has removed it"},
		{1, ``, gate, "another webhook has removed it"},
	} {
		object := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"shop","labels":{` + row.labels + `}},"spec":{` + row.spec + `}}`
		req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", object, nil)
		response := webhooktest.Decision(t, Hooks(&Ledger{})[row.hook], req)
		if response.Allowed || !strings.Contains(response.Result.Message, row.want) {
			t.Errorf("%s: got %+v, want a denial with %q", object, response, row.want)
		}
	}
}

// TestPageShowsTheCode checks that docs/initializers.md shows two functions as they are.
func TestPageShowsTheCode(t *testing.T) {
	page, err := os.ReadFile("../../../docs/initializers.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, begin := range map[string]string{"hooks.go": "// reserve takes", "reconciler.go": "// release removes"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, code, found := strings.Cut(string(source), "\n"+begin)
		code, _, _ = strings.Cut(code, "\n}\n")
		if !found || !strings.Contains(string(page), "```go\n"+begin+code+"\n}\n```\n") {
			t.Errorf("docs/initializers.md shows a different function: copy the one that begins with %q from %s", begin, file)
		}
	}
}
