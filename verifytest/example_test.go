// SPDX-License-Identifier: Apache-2.0

package verifytest_test

import (
	"net/http"
	"testing"

	"github.com/admitkit/admitkit/verifytest"
)

// A test of a project calls Run with the handler of its webhook.
func Example() {
	var webhook http.Handler // such as admission.WithDefaulter of controller-runtime
	_ = func(t *testing.T) {
		verifytest.Run(t, webhook, "../config/webhook/manifests.yaml", "../config/samples")
	}
	// Output:
}
