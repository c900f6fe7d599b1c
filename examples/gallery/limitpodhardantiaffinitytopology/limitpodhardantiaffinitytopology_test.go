// SPDX-License-Identifier: Apache-2.0

package limitpodhardantiaffinitytopology

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
)

// required returns a Pod with required anti-affinity for these topology keys.
func required(keys ...string) *corev1.Pod {
	return gallerytest.Pod(func(p *corev1.Pod) {
		anti := &corev1.PodAntiAffinity{}
		for _, key := range keys {
			anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{TopologyKey: key})
		}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: anti}
	})
}

func TestHook(t *testing.T) {
	preferred := required()
	preferred.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone"}}}
	rows := []struct {
		reason string
		pod    *corev1.Pod
		denied bool
	}{
		{"no affinity", gallerytest.Pod(), false},
		{"no anti-affinity", gallerytest.Pod(func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{} }), false},
		{"no term", required(), false},
		{"the node", required(corev1.LabelHostname), false},
		{"a preference does not block others", preferred, false},
		{"a zone", required("zone"), true},
		{"a zone after the node", required(corev1.LabelHostname, "zone"), true},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			for _, old := range []*corev1.Pod{nil, row.pod} { // an update must have the same result
				decision, _ := gallerytest.Call(t, Hook(), row.pod, old)
				if decision.Allowed == row.denied {
					t.Errorf("allowed is %v", decision.Allowed)
				}
				const want = `pods "shop" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed`
				if row.denied && (decision.Result.Code != http.StatusForbidden || decision.Result.Message != want) {
					t.Errorf("got %d %s", decision.Result.Code, decision.Result.Message)
				}
			}
		})
	}
}
