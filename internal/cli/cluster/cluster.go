// SPDX-License-Identifier: Apache-2.0

// Package cluster connects to the cluster that kubectl would choose, and reads objects from it.
package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/problem"
)

// Flags select a cluster.
type Flags struct{ Kubeconfig, Context string }

// Add defines the flags on the flag set of a command.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig file (default $KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&f.Context, "context", "", "context to use from the kubeconfig (default its current context)")
}

// Config returns the client configuration for the selected cluster.
func (f *Flags) Config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.Context})
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, problem.New("cannot connect to a cluster: there is no kubeconfig").Hint("--kubeconfig FILE, or export KUBECONFIG=FILE")
	case errors.Is(err, os.ErrNotExist):
		return nil, problem.New("cannot read the kubeconfig: %w", err).Hint("--kubeconfig FILE")
	case err != nil:
		return nil, problem.New("cannot use the kubeconfig: %w", err).Hint("kubectl config get-contexts")
	}
	config.UserAgent = "admitkit"
	config.Timeout = 30 * time.Second
	config.QPS, config.Burst = 50, 100
	return config, nil
}

// List reads all objects of a resource, page by page.
func List(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource) ([]*objects.Object, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, problem.New("cannot use the kubeconfig: %w", err)
	}
	var all []*objects.Object
	err = Pages(ctx, client.Resource(resource), metav1.ListOptions{}, func(page []unstructured.Unstructured) error {
		for i := range page {
			o, err := objects.Of(&page[i], page[i].GroupVersionKind())
			if err != nil {
				return err
			}
			all = append(all, o)
		}
		return nil
	})
	if err != nil {
		return nil, Explain(config, err)
	}
	return all, nil
}

// pageSize is the number of objects that Pages requests at once.
const pageSize = 500

// Pages reads all objects of a resource and calls each with one page of them at a time. It returns the first error of
// a request or of each.
func Pages(ctx context.Context, resource dynamic.ResourceInterface, o metav1.ListOptions, each func([]unstructured.Unstructured) error) error {
	if o.Limit == 0 {
		o.Limit = pageSize
	}
	for {
		page, err := resource.List(ctx, o)
		if err != nil {
			return err
		}
		if err := each(page.Items); err != nil {
			return err
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// Explain turns the error of a request into a problem with a hint for the user.
func Explain(config *rest.Config, err error) error {
	var connecting *net.OpError
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return problem.New("you lack a permission in the cluster: %w", err).Hint("kubectl auth whoami; kubectl auth can-i --list")
	case apierrors.IsUnauthorized(err):
		return problem.New("the cluster at %s does not accept your credentials: %w", config.Host, err).Hint("kubectl auth whoami")
	case errors.As(err, &connecting):
		return problem.New("cannot reach the cluster at %s: %w", config.Host, err).Hint("kubectl cluster-info  # with the same --kubeconfig and --context")
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return problem.New("the certificate of the cluster at %s is not trusted: %w", config.Host, err).Hint("set certificate-authority-data in the kubeconfig to the CA of this cluster")
	}
	return problem.New("%w", fmt.Errorf("the cluster at %s: %w", config.Host, err))
}
