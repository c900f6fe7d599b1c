// SPDX-License-Identifier: Apache-2.0

package livetest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// Main implements TestMain. It starts a cluster, stores it in *c, and runs the tests. It exits with an error
// if the cluster does not start. Where there is no API server, it skips the tests, as package need describes.
func Main(m *testing.M, c **testcluster.Cluster) {
	need.APIServerForAll()
	os.Exit(run(m, c))
}

func run(m *testing.M, c **testcluster.Cluster) (code int) {
	cluster, err := testcluster.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}()
	*c = cluster
	return m.Run()
}
