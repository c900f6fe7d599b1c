// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster holds the flag that selects the API server.
type cluster struct{ kubeconfig string }

func (c *cluster) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster; by default $KUBECONFIG, or the cluster of the Pod")
}

// A noTokenError stands for [ErrNoCluster] in a program that runs in a Pod without a usable token. Usually the token of
// the ServiceAccount is not mounted.
type noTokenError struct{ cause error }

func (e *noTokenError) Error() string {
	return "the Pod has no token of its ServiceAccount: set automountServiceAccountToken: true in the Deployment: " + e.cause.Error()
}

func (e *noTokenError) Is(target error) bool { return target == ErrNoCluster }

func (e *noTokenError) Unwrap() error { return e.cause }

// config returns given, or else the client configuration of --kubeconfig or the environment. If the environment names
// no usable cluster, the error is ErrNoCluster or wraps it. The caller may ignore such an error, because most hooks
// need no cluster. Any other error is about --kubeconfig.
func (c *cluster) config(given *rest.Config) (*rest.Config, error) {
	if given != nil {
		return given, nil
	}
	if c.kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		config, err := rest.InClusterConfig()
		switch {
		case errors.Is(err, rest.ErrNotInCluster):
			return nil, ErrNoCluster
		case err != nil:
			return nil, &noTokenError{err}
		}
		return config, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	switch {
	case err != nil && c.kubeconfig != "":
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	case err != nil:
		return nil, fmt.Errorf("%w: $%s: %w", ErrNoCluster, clientcmd.RecommendedConfigPathEnvVar, err)
	}
	return config, nil
}
