// SPDX-License-Identifier: Apache-2.0

package alwayspullimages

import (
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/examples/internal/hooktest"
	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const never, always = corev1.PullNever, corev1.PullAlways

// everywhere returns a change that gives a Pod an image with this pull policy in each kind of container and in a
// volume.
func everywhere(policy corev1.PullPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:v1", ImagePullPolicy: policy}}
		p.Spec.Containers[0].ImagePullPolicy = policy
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "debug:v1", ImagePullPolicy: policy}}}
		p.Spec.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "model:v1", PullPolicy: policy}}},
		}
	}
}

func withImage(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
}

func hook(t *testing.T, verb string) *webhook.Hook {
	t.Helper()
	return hooktest.Named(t, Hooks(), verb+".alwayspullimages.example.com")
}

func TestHooks(t *testing.T) {
	all := "[spec.initContainers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\", " +
		"spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\", " +
		"spec.ephemeralContainers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\", " +
		"spec.volumes[1].image.pullPolicy: Unsupported value: \"Never\": supported values: \"Always\"]"
	rows := []struct {
		reason   string
		pod, old *corev1.Pod
		want     corev1.PullPolicy // after the mutating hook
		denial   string            // of the validating hook
	}{
		{"the policy of every image is set", gallerytest.Pod(everywhere(never)), nil, always, `pods "shop" is forbidden: ` + all},
		{"every image already has the policy", gallerytest.Pod(everywhere(always)), nil, always, ""},
		{"an update keeps the images", gallerytest.Pod(everywhere(never)), gallerytest.Pod(everywhere(always)), never, ""},
		{"an update has a new image", gallerytest.Pod(everywhere(never), withImage("shop:v2")), gallerytest.Pod(everywhere(never)), always, `pods "shop" is forbidden: ` + all},
		{"an image moves to another container", gallerytest.Pod(everywhere(never), withImage("init:v1")), gallerytest.Pod(everywhere(never)), never, ""},
		{"a Pod without a name is named by its prefix", gallerytest.Pod(everywhere(never), func(p *corev1.Pod) { p.Name, p.GenerateName = "", "shop-" }), nil, always,
			`pods "shop-" is forbidden: ` + all},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			decision, after := gallerytest.Call(t, hook(t, "set"), row.pod, row.old)
			want := []corev1.PullPolicy{row.want, row.want, row.want, row.want}
			var got []corev1.PullPolicy
			for _, image := range images(&after.Spec) {
				got = append(got, *image.policy)
			}
			if !decision.Allowed || !slices.Equal(got, want) {
				t.Errorf("set: allowed is %v, policies are %q, want %q", decision.Allowed, got, want)
			}
			decision, _ = gallerytest.Call(t, hook(t, "check"), row.pod, row.old)
			switch {
			case decision.Allowed != (row.denial == ""):
				t.Errorf("check: allowed is %v", decision.Allowed)
			case !decision.Allowed && (decision.Result.Code != http.StatusForbidden || decision.Result.Message != row.denial):
				t.Errorf("check: got %d %s, want\n%s", decision.Result.Code, decision.Result.Message, row.denial)
			}
		})
	}
}

// TestIdempotence runs the harness. Law L4a fails on UPDATE, as it does for the original: if an update changes an image
// of a Pod without the policy Always, the hook also sets the pull policy. The API server rejects that change, because
// the pull policy is immutable.
func TestIdempotence(t *testing.T) {
	creatable := func(p *corev1.Pod) { p.Spec.EphemeralContainers = nil } // the API server adds them later
	gallerytest.IdempotentWithout(t, idempotence.L4a, func() *webhook.Hook { return Hooks()[0] },
		gallerytest.Pod(everywhere(never), creatable), gallerytest.Pod(everywhere(corev1.PullIfNotPresent), creatable))
}
