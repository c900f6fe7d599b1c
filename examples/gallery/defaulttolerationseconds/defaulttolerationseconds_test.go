// SPDX-License-Identifier: Apache-2.0

package defaulttolerationseconds

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func hook() *webhook.Hook { return Hook(DefaultSeconds, 60) }

func tolerating(list ...corev1.Toleration) *corev1.Pod {
	return gallerytest.Pod(func(p *corev1.Pod) { p.Spec.Tolerations = list })
}

func TestHook(t *testing.T) {
	const notReady, unreachable = " node.kubernetes.io/not-ready:NoExecute:300", " node.kubernetes.io/unreachable:NoExecute:60"
	rows := []struct {
		reason string
		pod    *corev1.Pod
		want   string // the added tolerations
	}{
		{"both are added, in this order", tolerating(), notReady + unreachable},
		{"a toleration of the Pod is kept", tolerating(corev1.Toleration{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}), unreachable},
		{"no effect means every effect", tolerating(corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists}), notReady},
		{"no key means every key", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), ""},
		{"another effect does not count", tolerating(corev1.Toleration{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}), notReady + unreachable},
		{"another key does not count", tolerating(corev1.Toleration{Key: "gpu", Effect: corev1.TaintEffectNoExecute}), notReady + unreachable},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			for _, old := range []*corev1.Pod{nil, row.pod} { // an update must have the same result
				decision, after := gallerytest.Call(t, hook(), row.pod, old)
				var got strings.Builder
				for _, added := range after.Spec.Tolerations[len(row.pod.Spec.Tolerations):] {
					fmt.Fprintf(&got, " %s:%s:%d", added.Key, added.Effect, *added.TolerationSeconds)
				}
				if !decision.Allowed || got.String() != row.want {
					t.Errorf("allowed is %v, added are %q, want %q", decision.Allowed, got.String(), row.want)
				}
			}
		})
	}
}

func TestIdempotence(t *testing.T) {
	gallerytest.Idempotent(t, hook, tolerating(), tolerating(corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}))
}
