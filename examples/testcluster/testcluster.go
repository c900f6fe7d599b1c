// SPDX-License-Identifier: Apache-2.0

// Package testcluster runs a real API server on this machine, and serves hooks for it. The tests of the
// examples use this package, and so does hack/demo.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/internal/apiserver"
)

// A Cluster is an API server without nodes. Its methods are safe for concurrent use.
type Cluster struct {
	// Client has all rights.
	Client client.Client
	server *apiserver.Server
	dir    string // folder of the kubeconfig files
	peers  []*Cluster
}

// AddPeer adds another API server of the same cluster, which uses the same etcd. Serve then waits for both.
func (c *Cluster) AddPeer(peer *Cluster) { c.peers = append(c.peers, peer) }

// clients returns a client for each API server.
func (c *Cluster) clients() []client.Client {
	all := []client.Client{c.Client}
	for _, peer := range c.peers {
		all = append(all, peer.Client)
	}
	return all
}

// Start starts an API server and waits until it is ready. The caller must call Stop.
func Start(ctx context.Context) (*Cluster, error) { return StartWith(ctx, apiserver.Options{}) }

// StartWith is Start with options for the API server.
func StartWith(ctx context.Context, o apiserver.Options) (*Cluster, error) {
	server, err := apiserver.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &Cluster{server: server}
	if err := c.prepare(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) prepare() (err error) {
	if c.Client, err = client.New(c.server.Config, client.Options{}); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "testcluster-"); err != nil {
		return err
	}
	return os.WriteFile(c.Kubeconfig(), c.server.Kubeconfig, 0o600)
}

// Config returns a configuration for clients with all rights.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.server.Config) }

// Etcd returns the URL of etcd. Another API server can use it, too: see Options.Etcd of package apiserver.
func (c *Cluster) Etcd() string { return c.server.Etcd }

// ServiceAccount returns the path of a kubeconfig file with a token of the ServiceAccount.
func (c *Cluster) ServiceAccount(ctx context.Context, namespace, name string) (file string, err error) {
	token, err := c.Kubectl(ctx, "", "create", "token", name, "--namespace="+namespace)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.Load(c.server.Kubeconfig)
	if err != nil {
		return "", err
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	}
	file = filepath.Join(c.dir, namespace+"-"+name)
	return file, clientcmd.WriteToFile(*config, file)
}

// StartControllers starts kube-controller-manager with only these controllers, such as deployment-controller, or with "*"
// for all that run by default. Stop ends it. The binary must have been built with
// hack/apiserver/build.sh --also kube-controller-manager.
func (c *Cluster) StartControllers(names ...string) error { return c.server.StartControllers(names...) }

// StartScheduler starts kube-scheduler. Stop ends it. The binary must have been built with
// hack/apiserver/build.sh --also kube-scheduler.
func (c *Cluster) StartScheduler() error { return c.server.StartScheduler() }

// Kubeconfig returns the path of a kubeconfig file with all rights.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// Restart kills etcd, the API server and the controllers at once, and starts them again with the data of etcd. It is not
// safe for concurrent use with any other method.
func (c *Cluster) Restart(ctx context.Context) error { return c.server.Restart(ctx) }

// Stop ends the API server and removes its files.
func (c *Cluster) Stop() error {
	return errors.Join(c.server.Stop(), os.RemoveAll(c.dir))
}

// Kubectl runs kubectl with this standard input. It returns standard output and standard error together, and
// an error if kubectl failed.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := c.server.Kubectl(ctx, c.Kubeconfig(), args...)
	cmd.Env = append(cmd.Env, "KUBECACHEDIR="+filepath.Join(c.dir, "cache"), "NO_COLOR=1")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}
