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

// remembered is for how long a registration is remembered in a cluster that nobody goes to again.
const remembered = 30 * 24 * time.Hour

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

// serverOf is the URL that a context is of in the kubeconfig, or empty.
func serverOf(f *cluster.Flags, name string) string {
	config := loadKubeconfig(f)
	if c := config.Contexts[name]; c != nil {
		if server := config.Clusters[c.Cluster]; server != nil {
			return server.Server
		}
	}
	return ""
}

// clusterID is what a cluster has for all of its life, and no other has; empty if it cannot be seen.
func clusterID(ctx context.Context, config *rest.Config) string {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return ""
	}
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "" // no permission, or there will be a better error
	}
	return string(namespace.UID)
}

// What is to be done about a note of a dev that is gone.
type fate int

const (
	removeHere fate = iota // its registration is in this cluster
	forget                 // nobody will come to its cluster any more
	keep
)

// fateOf decides by what is here, and by the server that the note's context has now.
func fateOf(note, here *state, server string) fate {
	same := note.Server == here.Server
	if note.Cluster != "" && here.Cluster != "" {
		same = note.Cluster == here.Cluster
	}
	switch {
	case same:
		return removeHere
	case note.Server == here.Server: // another cluster is there now
		return forget
	case here.Time.Sub(note.Time) > remembered, server != "" && server != note.Server:
		return forget
	}
	return keep
}

// removeLeftovers removes what a dev of this user registered that did not come to remove it.
func removeLeftovers(ctx context.Context, s *screen.Screen, config *rest.Config, where *cluster.Flags, here state) error {
	left, err := abandoned()
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range left {
		switch fateOf(&file.state, &here, serverOf(where, file.Context)) {
		case keep:
			s.Note("a dev that was killed left its registration in the cluster of context %s (%s): admitkit dev --cluster --context %s removes it; if that cluster is gone: rm %s", file.Context, file.Server, file.Context, file.path)
			file.release()
		case forget:
			s.Note("a dev that was killed left its registration in what was the cluster of context %s (%s), which is forgotten: it had the label %s=%s", file.Context, file.Server, devLabel, file.ID)
			errs = append(errs, file.remove())
		case removeHere:
			errs = append(errs, removeHeld(ctx, s, config, file))
		}
	}
	return errors.Join(errs...)
}

// removeHeld removes the registration of a note, and then the note.
func removeHeld(ctx context.Context, s *screen.Screen, config *rest.Config, file *stateFile) error {
	r, err := newRegistry(config, frame{owner: file.ID})
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
		s.Note("removed from the cluster what a dev left behind that was killed: %s", textutil.Count(n, "configuration"))
	}
	return file.remove()
}
