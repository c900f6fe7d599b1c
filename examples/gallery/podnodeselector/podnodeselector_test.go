// SPDX-License-Identifier: Apache-2.0

package podnodeselector

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/examples/internal/hooktest"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// hooks returns the hooks for a cluster in which the namespace of the Pods, team-a, has the annotation. The value
// "none" means that it lacks the annotation.
func hooks(annotation string, config Config) []*webhook.Hook {
	annotations := map[string]string{Annotation: annotation}
	if annotation == "none" {
		annotations = nil
	}
	return Hooks(gallerytest.Namespaces(map[string]map[string]string{"team-a": annotations}), config)
}

func selecting(set labels.Set) *corev1.Pod {
	return gallerytest.Pod(func(p *corev1.Pod) { p.Spec.NodeSelector = set })
}

func TestHooks(t *testing.T) {
	const (
		conflict = `pods "shop" is forbidden: pod node label selector conflicts with its namespace node label selector`
		outside  = `pods "shop" is forbidden: pod node label selector labels conflict with its namespace whitelist`
	)
	cluster := Config{Default: labels.Set{"env": "prod"}, Allowed: map[string]labels.Set{"team-a": {"env": "test", "disk": "ssd"}, "team-b": {}}}
	rows := []struct {
		reason     string
		annotation string
		config     Config
		pod        labels.Set
		want       labels.Set
		denial     string // of both hooks
		onlySet    bool   // only the mutating hook denies the Pod, because of the labels that it adds
	}{
		{reason: "nothing is configured", annotation: "none"},
		{reason: "the annotation", annotation: "env=test, disk=ssd", pod: labels.Set{"gpu": "a"}, want: labels.Set{"env": "test", "disk": "ssd", "gpu": "a"}},
		{reason: "the default", annotation: "none", config: Config{Default: cluster.Default}, want: labels.Set{"env": "prod"}},
		{reason: "an empty annotation is not the default", annotation: "", config: Config{Default: cluster.Default}},
		{reason: "the same label", annotation: "env=test", pod: labels.Set{"env": "test"}, want: labels.Set{"env": "test"}},
		{reason: "another value", annotation: "env=test", pod: labels.Set{"env": "prod"}, denial: conflict},
		{reason: "a label that is allowed", annotation: "", config: cluster, pod: labels.Set{"disk": "ssd"}, want: labels.Set{"disk": "ssd"}},
		{reason: "a label that is not allowed", annotation: "", config: cluster, pod: labels.Set{"gpu": "a"}, denial: outside},
		{reason: "a value that is not allowed", annotation: "", config: cluster, pod: labels.Set{"disk": "hdd"}, denial: outside},
		{reason: "the added labels must be allowed, too", annotation: "none", config: cluster, denial: outside, onlySet: true},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			for _, hook := range hooks(row.annotation, row.config) {
				decision, after := gallerytest.Call(t, hook, selecting(row.pod), nil)
				denied := row.denial != "" && (hook.Mutating() || !row.onlySet)
				switch {
				case decision.Allowed == denied:
					t.Errorf("%s: allowed is %v", hook.Name(), decision.Allowed)
				case denied && (decision.Result.Code != http.StatusForbidden || decision.Result.Message != row.denial):
					t.Errorf("%s: got %d %s", hook.Name(), decision.Result.Code, decision.Result.Message)
				case !denied && hook.Mutating() && !maps.Equal(after.Spec.NodeSelector, row.want):
					t.Errorf("%s: got %v, want %v", hook.Name(), after.Spec.NodeSelector, row.want)
				}
			}
		})
	}
}

func TestFailures(t *testing.T) {
	elsewhere := gallerytest.Pod(func(p *corev1.Pod) { p.Namespace = "gone" })
	for _, hook := range hooks("env=?", Config{}) {
		if got := gallerytest.Fails(t, hook, selecting(nil), nil); !strings.Contains(got, "the annotation "+Annotation+" of the namespace team-a is not valid") {
			t.Errorf("%s: got %q", hook.Name(), got)
		}
		if got := gallerytest.Fails(t, hook, elsewhere, nil); !strings.Contains(got, "namespaces gone: does not exist") {
			t.Errorf("%s: got %q", hook.Name(), got)
		}
	}
}

func TestLoad(t *testing.T) {
	rows := []struct{ reason, content, want string }{
		{"valid", "podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: env=prod\n  team-a: env=prod,disk=ssd\n  team-b:\n", ""},
		{"empty", "", "FILE:1: the file is empty: must be a map with the fields podNodeSelectorPluginConfig"},
		{"not YAML", "{", "FILE:1: not valid YAML: "},
		{"misspelt", "podNodeSelectorPluginConfg: {}\n", `FILE:1: podNodeSelectorPluginConfg: unknown field: did you mean podNodeSelectorPluginConfig?`},
		{"bad selector", "podNodeSelectorPluginConfig:\n  team-a: env\n", `FILE:2: podNodeSelectorPluginConfig[team-a]: Invalid value: "env": invalid selector`},
		{"bad default", "podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: env=?\n", `FILE:2: podNodeSelectorPluginConfig[clusterDefaultNodeSelector]: Invalid value: "env=?"`},
		{"a key twice", "podNodeSelectorPluginConfig:\n  team-a: env=test,disk=ssd, env=prod\n", `FILE:2: podNodeSelectorPluginConfig[team-a]: Invalid value: "env=test,disk=ssd, env=prod": sets env twice: remove one`},
		{"not a namespace", "podNodeSelectorPluginConfig:\n  Team_A: env=test\n", `FILE:2: podNodeSelectorPluginConfig[Team_A]: Invalid value: "Team_A": not a name of a namespace: a lowercase RFC 1123 label must`},
		{"misspelt default", "podNodeSelectorPluginConfig:\n  clusterDefaultNodeselector: env=test\n", `FILE:2: podNodeSelectorPluginConfig[clusterDefaultNodeselector]: Invalid value: "clusterDefaultNodeselector": not a name of a namespace: did you mean clusterDefaultNodeSelector?`},
		{"a default that a namespace denies", "podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: env=prod\n  team-a: env=dev\n", `FILE:3: podNodeSelectorPluginConfig[team-a]: Invalid value: "env=dev": does not allow the default env=prod, so every Pod there without an annotation on its namespace would be denied`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "selectors.yaml")
			if err := os.WriteFile(file, []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := Load(file)
			want := strings.ReplaceAll(row.want, "FILE", file)
			switch {
			case (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want):
				t.Errorf("got %v, want %q", err, want)
			case row.reason == "valid" && (config.Default["env"] != "prod" || len(config.Allowed) != 2 || config.Allowed["team-a"]["disk"] != "ssd"):
				t.Errorf("got %+v", config)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("want an error for a file that does not exist")
	}
}

func TestIdempotence(t *testing.T) {
	set := func() *webhook.Hook {
		return hooktest.Named(t, hooks("env=test", Config{}), "set.podnodeselector.example.com")
	}
	gallerytest.Idempotent(t, set, selecting(nil), selecting(labels.Set{"gpu": "a"}))
}
