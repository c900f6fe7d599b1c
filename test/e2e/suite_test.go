// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the specs that run hooks against a real kube-apiserver.
package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/internal/devcert"
)

// The API server, its clients and the CA are the same for all specs.
var (
	server    *apiserver.Server
	config    *rest.Config
	clients   *kubernetes.Clientset
	ca        *devcert.CA
	auditFile string
)

func TestE2E(t *testing.T) {
	need.APIServer(t)
	RegisterFailHandler(Fail)
	RunSpecs(t, "admitkit against a real API server")
}

// auditPolicy records requests with their bodies. Only at this level does the API server log the
// patches of webhooks.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:nodes", "system:masters"]
  resources: [{group: "coordination.k8s.io"}]
- level: Request
  verbs: [create, update, patch, delete, deletecollection, connect, get]
`

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	ca, err = devcert.NewCA()
	Expect(err).NotTo(HaveOccurred())

	dir := GinkgoT().TempDir()
	policy := filepath.Join(dir, "audit-policy.yaml")
	Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
	auditFile = filepath.Join(dir, "audit.log")

	server, err = apiserver.Start(ctx, map[string][]string{
		"audit-policy-file":        {policy},
		"audit-log-path":           {auditFile},
		"audit-log-mode":           {"blocking"},
		"watch-cache":              {"true"},
		"enable-admission-plugins": {"DefaultTolerationSeconds,LimitRanger"},

		"admission-control-config-file": {prepareLocks(dir)},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)

	config = rest.CopyConfig(server.Config)
	config.QPS, config.Burst = -1, -1
	clients = kubernetes.NewForConfigOrDie(config)
	DeferCleanup(awaitStopped)
	startMarker()
})
