// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	originalalways "k8s.io/kubernetes/plugin/pkg/admission/alwayspullimages"
	originaltopology "k8s.io/kubernetes/plugin/pkg/admission/antiaffinity"
	originalseconds "k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	originalselector "k8s.io/kubernetes/plugin/pkg/admission/podnodeselector"
	originalrestriction "k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction"

	"github.com/admitkit/admitkit/examples/gallery/alwayspullimages"
	"github.com/admitkit/admitkit/examples/gallery/defaulttolerationseconds"
	"github.com/admitkit/admitkit/examples/gallery/limitpodhardantiaffinitytopology"
	"github.com/admitkit/admitkit/examples/gallery/podnodeselector"
	"github.com/admitkit/admitkit/examples/gallery/podtolerationrestriction"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A controller is an admission controller of Kubernetes and the hooks that are equal to it.
type controller struct {
	name     string // of the original
	register func(*admission.Plugins)
	// configurations are files for both; an empty one means no file. Requests are spread over them.
	configurations []string
	hooks          func(t *testing.T, namespaces *reads.Reader[*corev1.Namespace], file string) []*webhook.Hook
	differences    []*difference
}

func controllers() []*controller {
	return []*controller{{
		name: originalalways.PluginName, register: originalalways.Register, configurations: []string{""},
		hooks: func(*testing.T, *reads.Reader[*corev1.Namespace], string) []*webhook.Hook {
			return alwayspullimages.Hooks()
		},
		differences: []*difference{deniedWith403()},
	}, {
		name: originalseconds.PluginName, register: originalseconds.Register, configurations: []string{""},
		hooks: func(*testing.T, *reads.Reader[*corev1.Namespace], string) []*webhook.Hook {
			return []*webhook.Hook{defaulttolerationseconds.Hook(defaulttolerationseconds.DefaultSeconds, defaulttolerationseconds.DefaultSeconds)}
		},
	}, {
		name: originaltopology.PluginName, register: originaltopology.Register, configurations: []string{""},
		hooks: func(*testing.T, *reads.Reader[*corev1.Namespace], string) []*webhook.Hook {
			return []*webhook.Hook{limitpodhardantiaffinitytopology.Hook()}
		},
	}, {
		name: originalselector.PluginName, register: originalselector.Register,
		configurations: []string{"", selectors},
		hooks: func(t *testing.T, namespaces *reads.Reader[*corev1.Namespace], file string) []*webhook.Hook {
			return podnodeselector.Hooks(namespaces, load(t, file, podnodeselector.Load))
		},
		differences: []*difference{failsInItsWords()},
	}, {
		name: originalrestriction.PluginName, register: originalrestriction.Register,
		configurations: []string{"", tolerationDefaults, tolerationWhitelist},
		hooks: func(t *testing.T, namespaces *reads.Reader[*corev1.Namespace], file string) []*webhook.Hook {
			return podtolerationrestriction.Hooks(namespaces, load(t, file, podtolerationrestriction.Load))
		},
		differences: []*difference{deniedWith403(), failsInItsWords()},
	}}
}

const (
	selectors = `
podNodeSelectorPluginConfig:
  clusterDefaultNodeSelector: env=prod
  plain: env=prod,disk=ssd
  ns-1: env=test,env=prod,gpu=a
  ns-2: ""
  ns-3: disk=ssd
  ns-4: env=test
`
	tolerationHead = `
apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
kind: Configuration
`
	tolerationDefaults = tolerationHead + `
default:
- {key: spot, operator: Exists, effect: NoSchedule}
- {key: gpu, operator: Equal, value: "1", effect: NoExecute, tolerationSeconds: 60}
`
	tolerationWhitelist = tolerationDefaults + `
whitelist:
- {key: spot, operator: Exists}
- {key: gpu, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
- {key: gpu, value: "2"}
- {key: node.kubernetes.io/memory-pressure, operator: Exists}
`
)

// load reads a configuration file. No file is the zero configuration.
func load[T any](t *testing.T, file string, read func(string) (T, error)) (config T) {
	t.Helper()
	if file == "" {
		return config
	}
	config, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// start returns the original and the hooks for each configuration. Both read Namespaces from the same cluster.
func (c *controller) start(t *testing.T, namespaces []*corev1.Namespace) []*variant {
	t.Helper()
	client := fake.NewClientset()
	for _, ns := range namespaces {
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	cluster := cluster{client, factory}
	reader := cluster.reader(t)
	plugins := admission.NewPlugins()
	c.register(plugins)
	var variants []*variant
	for _, content := range c.configurations {
		var config io.Reader
		file := ""
		if content != "" {
			config = strings.NewReader(content)
			file = filepath.Join(t.TempDir(), "configuration.yaml")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		plugin, err := plugins.InitPlugin(c.name, config, cluster)
		if err != nil {
			t.Fatal(err)
		}
		v := &variant{plugin: plugin}
		for _, hook := range c.hooks(t, reader, file) {
			v.hooks = append(v.hooks, hook.WithLogger(funcr.New(func(_, _ string) {}, funcr.Options{})))
		}
		variants = append(variants, v)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for _, ns := range namespaces {
		if ns.Name == notCached {
			if err := factory.Core().V1().Namespaces().Informer().GetIndexer().Delete(ns); err != nil {
				t.Fatal(err)
			}
		}
	}
	return variants
}

// A cluster initializes the originals.
type cluster struct {
	client  kubernetes.Interface
	factory informers.SharedInformerFactory
}

func (c cluster) Initialize(plugin admission.Interface) {
	if p, ok := plugin.(initializer.WantsExternalKubeClientSet); ok {
		p.SetExternalKubeClientSet(c.client)
	}
	if p, ok := plugin.(initializer.WantsExternalKubeInformerFactory); ok {
		p.SetExternalKubeInformerFactory(c.factory)
	}
	if p, ok := plugin.(initializer.WantsFeatures); ok {
		p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	}
}

func (c cluster) reader(t *testing.T) *reads.Reader[*corev1.Namespace] {
	t.Helper()
	informer := c.factory.Core().V1().Namespaces()
	informer.Informer() // requests the cache
	reader, err := reads.New(reads.Options[*corev1.Namespace]{
		Resource: "namespaces",
		Cached:   func(_, name string) (*corev1.Namespace, error) { return informer.Lister().Get(name) },
		Live: func(ctx context.Context, _, name string) (*corev1.Namespace, error) {
			return c.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return reader
}
