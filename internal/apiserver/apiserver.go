// SPDX-License-Identifier: Apache-2.0

// Package apiserver runs a real kube-apiserver and etcd on this machine, on loopback only.
package apiserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/admitkit/admitkit/internal/apiserver/build"
)

// Assets returns the folder with kube-apiserver, etcd and kubectl: KUBEBUILDER_ASSETS, or else what
// was built, or else what setup-envtest downloaded.
func Assets(context.Context) (string, error) { return build.Find() }

// A Server is a running API server with its etcd.
type Server struct {
	// Config is for clients; its user is in system:masters.
	Config *rest.Config
	// Kubeconfig is the same for kubectl.
	Kubeconfig []byte
	// Dir is the folder with the binaries.
	Dir string
	env *envtest.Environment
}

// Start runs an API server with these extra flags, such as {"v": {"2"}}, and waits until it is
// ready. Stop it with Stop.
func Start(ctx context.Context, flags map[string][]string) (*Server, error) {
	dir, err := Assets(ctx)
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{BinaryAssetsDirectory: dir}
	args := env.ControlPlane.GetAPIServer().Configure()
	for name, values := range flags {
		args.Set(name, values...)
	}
	config, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("cannot start the API server: %w", err)
	}
	return &Server{Config: config, Kubeconfig: env.KubeConfig, Dir: dir, env: env}, nil
}

// Kubectl returns the command that runs kubectl against a kubeconfig file.
func (s *Server) Kubectl(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Dir, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return cmd
}

// Stop ends the API server and etcd and removes their data.
func (s *Server) Stop() error { return s.env.Stop() }
