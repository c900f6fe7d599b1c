// SPDX-License-Identifier: Apache-2.0

// Package apiservertest starts a real API server for a test.
package apiservertest

import (
	"testing"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// Start runs an API server with these extra flags until the test ends. It skips or fails the test
// as need.APIServer does.
func Start(t testing.TB, flags map[string][]string) *apiserver.Server {
	t.Helper()
	need.APIServer(t)
	server, err := apiserver.Start(t.Context(), flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}
