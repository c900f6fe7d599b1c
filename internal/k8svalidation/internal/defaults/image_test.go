// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPullPolicy(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for policy, images := range map[corev1.PullPolicy][]string{
		corev1.PullAlways: {
			"web", "web:latest", "a/b/web", "host:5000/web", "localhost/web", "HOST/web", "host.example.com/a/web:latest", "[::1]:5000/web",
			"web:latest" + digest, "a__b/c--d", "index.docker.io/web",
		},
		corev1.PullIfNotPresent: {
			"web:v1", "web" + digest, "web:v1" + digest, "host:5000/web:v1", "web:LATEST", "",
			// These names are invalid, so they do not get the default tag latest.
			"Web", "web:", "/web", "web/", "a//b", "we b", "a___b", ".a", "web:latest@sha256:00", "host:x/web", strings.Repeat("a0", 32),
			strings.Repeat("a", 256), "localhost/Web", "-a/b.c/web",
		},
	} {
		for _, image := range images {
			if got := pullPolicy(image); got != policy {
				t.Errorf("%q: %s, want %s", image, got, policy)
			}
		}
	}
}
