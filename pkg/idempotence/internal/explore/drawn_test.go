// SPDX-License-Identifier: Apache-2.0

package explore

import "testing"

func TestForAllElements(t *testing.T) {
	for path, want := range map[string]string{
		"spec.templates[name=a].schedule.id":       "spec.templates[*].schedule.id",
		"spec.a[name=x].b[port=1,protocol=TCP].id": "spec.a[*].b[*].id",
		"spec.a[*].id":                         "spec.a[*].id",
		"metadata.annotations[example.com/id]": "metadata.annotations[example.com/id]",
		"spec.id":                              "spec.id",
		"metadata.labels[app.kubernetes.io/version]": "metadata.labels[app.kubernetes.io/version]",
	} {
		if got := forAllElements(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
