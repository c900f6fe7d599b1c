// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
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
	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A controller is an admission controller of Kubernetes, the original, and the hooks that reimplement it.
type controller struct {
	name     string                   // of the original
	register func(*admission.Plugins) // nil if Kubernetes has no such controller
	// configurations are the contents of configuration files for the original and the hooks. An empty one means no
	// file. Requests are spread over the configurations.
	configurations []string
	// clusters lists, for each simulated cluster, the objects besides Namespaces that the controller reads. Requests
	// are spread over the clusters, too.
	clusters [][]runtime.Object
	// partly means that the hook does, in the validating phase, only a part of what the original does in the mutating one.
	partly bool
	// hiddenBy lists admission controllers that would answer requests first. They are disabled on the API servers.
	hiddenBy    []string
	hooks       func(t *testing.T, in cluster, file string) []*webhook.Hook
	edges       func(g *generator) []*request
	generate    func(g *generator) *request
	differences []*difference
	onServer    []*difference // further differences between API servers
	broken      []brokenLaw
	// generateForServers, if set, replaces generate for API servers.
	generateForServers func(g *generator) *request
	timed              bool                // decisions depend on the time: in process, both sides run in a synctest bubble
	plain              func(result) result // optional: removes random parts of a result
	// prepare replaces server.prepare if it is not nil.
	prepare func(s *server, ctx context.Context, r *request, suffix string) (sender, error)
}

// A brokenLaw is a law of the harness that fails for the hook, in most cases because it also fails for the
// original.
type brokenLaw struct {
	law    idempotence.Law // empty: any law
	path   string          // the field path where the law fails; empty: anywhere
	reason string
}

// mergesTolerations declares that the hook keeps only one of two tolerations if that covers the other one.
func mergesTolerations() brokenLaw {
	return brokenLaw{path: "spec.tolerations", reason: "like the original, the hook removes a toleration that another one covers"}
}

func controllers() []*controller {
	return slices.Concat(podControllers(), storageControllers(), networkControllers(), classControllers(), namespaceControllers(), ownerControllers(), eventControllers(), imageControllers(), securityControllers(), limitControllers(), accountControllers(), nodeControllers())
}

// podControllers returns the controllers whose decision depends on the Pod, its Namespace and a configuration.
func podControllers() []*controller {
	list := []*controller{{
		name: originalalways.PluginName, register: originalalways.Register,
		hooks:       func(*testing.T, cluster, string) []*webhook.Hook { return alwayspullimages.Hooks() },
		differences: []*difference{deniedWith403()},
		broken:      []brokenLaw{{law: idempotence.L4a, reason: "an update of an image also changes the pull policy, which the API server rejects"}},
	}, {
		name: originalseconds.PluginName, register: originalseconds.Register,
		hooks: func(*testing.T, cluster, string) []*webhook.Hook {
			return []*webhook.Hook{defaulttolerationseconds.Hook(defaulttolerationseconds.DefaultSeconds, defaulttolerationseconds.DefaultSeconds)}
		},
	}, {
		name: originaltopology.PluginName, register: originaltopology.Register,
		hooks: func(*testing.T, cluster, string) []*webhook.Hook {
			return []*webhook.Hook{limitpodhardantiaffinitytopology.Hook()}
		},
	}, {
		name: originalselector.PluginName, register: originalselector.Register,
		configurations: []string{"", selectors},
		hooks: func(t *testing.T, in cluster, file string) []*webhook.Hook {
			return podnodeselector.Hooks(in.namespaces(t), nodeSelectors(file))
		},
		differences: []*difference{failsInItsWords(podnodeselector.Annotation)},
	}, {
		name: originalrestriction.PluginName, register: originalrestriction.Register,
		configurations: []string{"", tolerationDefaults, tolerationWhitelist},
		hooks: func(t *testing.T, in cluster, file string) []*webhook.Hook {
			return podtolerationrestriction.Hooks(in.namespaces(t), load(t, file, podtolerationrestriction.Load))
		},
		differences: []*difference{
			deniedWith403(), failsInItsWords(podtolerationrestriction.DefaultAnnotation, podtolerationrestriction.WhitelistAnnotation),
		},
		broken: []brokenLaw{mergesTolerations()},
	}}
	for _, c := range list {
		c.edges, c.generate = (*generator).podEdges, (*generator).podRequest
	}
	return list
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

// nodeSelectors returns the content of the constant selectors, or the zero configuration if there is no file. Load rejects
// this content, because ns-1 sets env twice, and some namespaces do not allow the default. The original accepts it.
func nodeSelectors(file string) podnodeselector.Config {
	if file == "" {
		return podnodeselector.Config{}
	}
	return podnodeselector.Config{Default: labels.Set{"env": "prod"}, Allowed: map[string]labels.Set{
		"plain": {"env": "prod", "disk": "ssd"}, "ns-1": {"env": "prod", "gpu": "a"}, "ns-2": {}, "ns-3": {"disk": "ssd"}, "ns-4": {"env": "test"},
	}}
}

// load reads a configuration file. Without a file, it returns the zero configuration.
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

// start returns the original and the hooks for each configuration and each cluster. Both read from that cluster.
func (c *controller) start(t *testing.T, namespaces []*corev1.Namespace) []*variant {
	t.Helper()
	var variants []*variant
	for _, objects := range orOne(c.clusters) {
		in := newCluster(t, namespaces, objects)
		for _, content := range orOne(c.configurations) {
			variants = append(variants, c.variant(t, in, content))
		}
		in.sync(t)
	}
	return variants
}

// orOne returns the list, or a list with a zero value if it is empty.
func orOne[T any](list []T) []T {
	if len(list) == 0 {
		return make([]T, 1)
	}
	return list
}

func (c *controller) variant(t *testing.T, in cluster, content string) *variant {
	t.Helper()
	var config io.Reader
	if content != "" {
		config = strings.NewReader(content)
	}
	if c.register == nil {
		return &variant{hooks: c.hooksFor(t, in, content)}
	}
	plugins := admission.NewPlugins()
	c.register(plugins)
	plugin, err := plugins.InitPlugin(c.name, config, in)
	if err != nil {
		t.Fatal(err)
	}
	if c.partly {
		plugin = inValidation{plugin}
	}
	return &variant{plugin: plugin, hooks: c.hooksFor(t, in, content)}
}

// hooksFor returns the hooks with this content of their configuration file.
func (c *controller) hooksFor(t *testing.T, in cluster, content string) []*webhook.Hook {
	t.Helper()
	file := ""
	if content != "" {
		file = filepath.Join(t.TempDir(), "configuration.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hooks := c.hooks(t, in, file)
	for i, hook := range hooks {
		hooks[i] = hook.WithLogger(logr.Discard())
	}
	return hooks
}
