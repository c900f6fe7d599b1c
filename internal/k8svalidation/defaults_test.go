// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaults(t *testing.T) {
	for _, c := range trees(t, "testdata/defaults.yaml") {
		obj, err := typed(c["given"].(tree))
		if err != nil {
			t.Fatal(err)
		}
		Default(obj)
		if diff := cmp.Diff(c["want"], any(defaulted(t, obj))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestDefaultsAgreeWithTheAPIServer(t *testing.T) {
	s := startServer(t)
	namespace := s.namespace(t)
	for _, c := range trees(t, "testdata/defaults.yaml") {
		c["given"].(tree)["metadata"].(tree)["namespace"] = namespace
		obj, err := typed(c["given"].(tree))
		if err != nil {
			t.Fatal(err)
		}
		stored, refusal := s.create(t, obj)
		errs := Validate(obj)
		Default(obj)
		new(count).compare(t, "", obj, stored, errs, refusal)
	}
}
