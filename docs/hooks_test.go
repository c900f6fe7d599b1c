// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// mutators lists the mutating hooks that the pages show. Each is a subject of package idempotence, so that a test can
// check it.
var mutators = []struct {
	page    string
	subject idempotence.Subject
	samples []runtime.Object
}{
	{"../README.md", mutator("pods", func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for i := range req.Object.Spec.Containers {
			c := &req.Object.Spec.Containers[i]
			if strings.HasSuffix(c.Image, ":latest") && c.ImagePullPolicy != corev1.PullAlways {
				c.ImagePullPolicy = corev1.PullAlways
				req.Warn("container " + c.Name + ": the image is always pulled, because the tag latest can change")
			}
		}
		return nil
	}), []runtime.Object{&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:latest", ImagePullPolicy: corev1.PullIfNotPresent}}},
	}}},
	{"getting-started.md", mutator("pods", func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, "hello.example.com/created-by", req.UserInfo.Username)
		return nil
	}), nil},
	{"testing.md", mutator("configmaps", func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
		user := req.UserInfo.Username // many names, such as those of service accounts, cannot be the value of a label
		if req.Object.Labels["team"] == "" && len(validation.IsValidLabelValue(user)) == 0 {
			metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "team", user)
		}
		return nil
	}), nil},
	{"requests.md", mutator("deployments", func(_ context.Context, req *webhook.Request[workload]) error {
		if ptr.Deref(req.Object.Spec.Replicas, 1) < 2 { // the API server has filled in 1 for nil
			req.Object.Spec.Replicas = ptr.To[int32](2)
		}
		return nil
	}), nil},
	{"reinvocation.md", mutator("pods", func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		const name, path = "proxy-socket", "/run/proxy"
		own := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		at := slices.IndexFunc(req.Object.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		switch {
		case at < 0:
			req.Object.Spec.Volumes = append(req.Object.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: own})
		case !equality.Semantic.DeepEqual(req.Object.Spec.Volumes[at].VolumeSource, own):
			return webhook.Deny("the volume name " + name + " is taken")
		}
		for i := range req.Object.Spec.Containers {
			c := &req.Object.Spec.Containers[i]
			at := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
			switch {
			case at < 0:
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
			case c.VolumeMounts[at].Name != name:
				return webhook.Deny("the path " + path + " is taken in container " + c.Name)
			}
		}
		return nil
	}), nil},
}

type workload struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Replicas *int32 `json:"replicas,omitempty"`
	} `json:"spec"`
}

func mutator[T any](resource string, handle func(context.Context, *webhook.Request[T]) error) idempotence.Subject {
	group := ""
	if resource == "deployments" {
		group = "apps"
	}
	reg := admissionregistrationv1.MutatingWebhook{Name: "page.example.com", Rules: webhook.Rules(webhook.OnCreate(group, "v1", resource))}
	return idempotence.Handler(reg, func() http.Handler { return webhook.Mutating(reg, handle) })
}

func TestHooksOfThePagesAreIdempotent(t *testing.T) {
	for _, m := range mutators {
		t.Run(m.page, func(t *testing.T) {
			idempotence.Check(t, m.subject, idempotence.Options{Samples: m.samples, Objects: 5, Budget: 10 * time.Minute, Store: idempotence.NoStore})
		})
	}
}

// TestPagesShowTheMutators requires that each page contains the body of its hook.
func TestPagesShowTheMutators(t *testing.T) {
	source, err := os.ReadFile("hooks_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutators {
		page, err := os.ReadFile(m.page)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(source), `{"`+m.page+`", mutator(`)
		_, rest, _ = strings.Cut(rest, "\n")
		body, _, found := strings.Cut(rest, "\n\t\treturn nil\n")
		if !found || !strings.Contains(withoutIndent(string(page)), withoutIndent(body)) {
			t.Errorf("%s does not show\n%s", m.page, body)
		}
	}
}
