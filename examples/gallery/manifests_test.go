// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/examples/internal/livetest"
	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/pkg/lint"
)

func TestManifests(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	cluster := startCluster(t)
	arguments := livetest.Arguments(t, cluster)
	enable := arguments[slices.IndexFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "--enable=") })]
	t.Run("webhooks match the code", func(t *testing.T) { livetest.CheckWebhooks(t, newProgram(), enable) })
	t.Run("RBAC rules match the code", func(t *testing.T) { livetest.CheckRBAC(t, cluster, newProgram()) })
	t.Run("references exist", func(t *testing.T) { livetest.CheckReferences(t, cluster, newProgram()) })
	t.Run("the API server accepts them", func(t *testing.T) { livetest.CheckAccepted(t, cluster) })
	t.Run("lint finds nothing", func(t *testing.T) {
		const asOriginal = "as the original, the hook handles updates: with the images or tolerations that an update adds, a Pod must obey the policy, too"
		livetest.CheckLint(t, cluster, lint.Options{
			// Each of their packages has a test with idempotence.Check.
			Proven: []string{"set.alwayspullimages.example.com", "set.podnodeselector.example.com", "set.podtolerationrestriction.example.com"},
			Ignore: []lint.Ignore{
				{Rule: "AK307", Webhook: "set.alwayspullimages.example.com", Reason: asOriginal},
				{Rule: "AK307", Webhook: "set.podtolerationrestriction.example.com", Reason: asOriginal},
			},
		})
	})
}

// startCluster starts an API server, which runs until the end of the test.
func startCluster(t *testing.T) *testcluster.Cluster {
	t.Helper()
	need.APIServer(t)
	cluster, err := testcluster.Start(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}
