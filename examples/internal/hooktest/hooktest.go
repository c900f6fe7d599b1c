// SPDX-License-Identifier: Apache-2.0

// Package hooktest has helpers for the tests of the examples, in addition to package webhooktest.
package hooktest

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Named returns the hook with the given name.
func Named(t *testing.T, hooks []*webhook.Hook, name string) *webhook.Hook {
	t.Helper()
	for _, h := range hooks {
		if h.Name() == name {
			return h
		}
	}
	t.Fatalf("there is no hook %s", name)
	return nil
}

// Fields returns the field paths in a denial.
func Fields(resp *admissionv1.AdmissionResponse) []string {
	if resp.Result == nil || resp.Result.Details == nil {
		return nil
	}
	var all []string
	for _, cause := range resp.Result.Details.Causes {
		all = append(all, cause.Field)
	}
	return all
}
