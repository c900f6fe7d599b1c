// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/admitkit/admitkit/examples/internal/livetest"
)

func TestManifests(t *testing.T) {
	t.Run("webhooks match the code", func(t *testing.T) { livetest.CheckWebhooks(t, newProgram()) })
	t.Run("references exist", func(t *testing.T) { livetest.CheckReferences(t, cluster, newProgram()) })
	t.Run("the API server accepts them", func(t *testing.T) { livetest.CheckAccepted(t, cluster) })
}
