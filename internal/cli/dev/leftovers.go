// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/textutil"
)

// retention is how long the state file of another cluster is kept.
const retention = 30 * 24 * time.Hour

func loadKubeconfig(f *cluster.Flags) *clientcmdapi.Config {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	config, err := rules.Load()
	if err != nil {
		return clientcmdapi.NewConfig()
	}
	return config
}

func contextName(f *cluster.Flags) string {
	if f.Context != "" {
		return f.Context
	}
	if name := loadKubeconfig(f).CurrentContext; name != "" {
		return name
	}
	return "(none)"
}

// serverOf returns the server URL of a context in the kubeconfig, or "".
func serverOf(f *cluster.Flags, name string) string {
	config := loadKubeconfig(f)
	if c := config.Contexts[name]; c != nil {
		if server := config.Clusters[c.Cluster]; server != nil {
			return server.Server
		}
	}
	return ""
}

// clusterID returns the UID of the namespace kube-system, which identifies a cluster, or "" if it cannot be read.
func clusterID(ctx context.Context, config *rest.Config) string {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return ""
	}
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "" // if the cluster cannot be reached, a later request has a better error
	}
	return string(namespace.UID)
}

// A cleanup is the action for the state file of a dev process that has ended without removing its registrations.
type cleanup int

const (
	removeHere cleanup = iota // the registrations are in this cluster: remove them
	forget                    // the cluster no longer exists, or the file is too old: remove only the file
	keep                      // the registrations are in another cluster: keep the file
)

// cleanupOf returns the action for a state file with the content note. here describes the current cluster. server is
// the URL that the kubeconfig now has for the context in note.
func cleanupOf(note, here *state, server string) cleanup {
	same := note.Server == here.Server
	if note.Cluster != "" && here.Cluster != "" {
		same = note.Cluster == here.Cluster
	}
	switch {
	case same:
		return removeHere
	case note.Server == here.Server: // another cluster has this URL now
		return forget
	case here.Time.Sub(note.Time) > retention, server != "" && server != note.Server:
		return forget
	}
	return keep
}

// removeLeftovers removes the registrations that killed dev processes of this user left behind.
func removeLeftovers(ctx context.Context, s *screen.Screen, config *rest.Config, where *cluster.Flags, here state) error {
	left, err := abandoned()
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range left {
		switch cleanupOf(&file.state, &here, serverOf(where, file.Context)) {
		case keep:
			s.Note("an earlier \"admitkit dev\" was killed and left its registrations in the cluster of context %s (%s): admitkit dev --cluster --context %s removes them; if that cluster no longer exists: rm %s", file.Context, file.Server, file.Context, file.path)
			file.release()
		case forget:
			s.Note("an earlier \"admitkit dev\" was killed and left its registrations in the former cluster of context %s (%s); if that cluster still exists, delete the configurations with the label %s=%s", file.Context, file.Server, devLabel, file.ID)
			errs = append(errs, file.remove())
		case removeHere:
			errs = append(errs, removeRegistered(ctx, s, config, file))
		}
	}
	return errors.Join(errs...)
}

// removeRegistered removes the registrations of a state file from the cluster, and then the file.
func removeRegistered(ctx context.Context, s *screen.Screen, config *rest.Config, file *stateFile) error {
	r, err := newRegistry(config, adaptation{owner: file.ID})
	if err != nil {
		file.release()
		return err
	}
	n, err := r.removeOwned(ctx)
	if err != nil {
		file.release()
		return err
	}
	if n > 0 {
		s.Note("removed the registrations that a killed \"admitkit dev\" left in the cluster: %s", textutil.Count(n, "configuration"))
	}
	return file.remove()
}
