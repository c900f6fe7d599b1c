// SPDX-License-Identifier: Apache-2.0

// Command istio serves Istio's sidecar injector on a loopback address, which it prints.
package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"

	"istio.io/istio/manifests"
	"istio.io/istio/pilot/pkg/features"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/config/mesh/meshwatcher"
	"istio.io/istio/pkg/kube/inject"
	"istio.io/istio/pkg/kube/multicluster"
	istiolog "istio.io/istio/pkg/log"
	"sigs.k8s.io/yaml"
)

func main() {
	log.Fatal(run())
}

func run() error {
	quiet := istiolog.DefaultOptions()
	quiet.SetDefaultOutputLevel(istiolog.OverrideScopeName, istiolog.ErrorLevel) // the address goes to standard output
	if err := istiolog.Configure(quiet); err != nil {
		return err
	}
	features.EnableNativeSidecars = features.NativeSidecarModeEnabled // what "auto" means in a new cluster
	settings, err := read("charts/istio-control/istio-discovery")
	if err != nil {
		return err
	}
	environment := model.NewEnvironment()
	environment.Watcher = meshwatcher.NewTestWatcher(mesh.DefaultMeshConfig())
	mux := http.NewServeMux()
	if _, err := inject.NewWebhook(inject.WebhookParameters{
		Watcher: settings, Env: environment, Mux: mux, Revision: "default", MultiCluster: multicluster.NewFakeController(),
	}); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mux)
}

// settings has the injector's configuration. It stands for the ConfigMap, and never changes.
type settings struct {
	config inject.Config
	values string
}

func (*settings) SetHandler(func(*inject.Config, string) error) {}
func (*settings) Run(<-chan struct{})                           {}
func (s *settings) Get() (*inject.Config, string, error)        { return &s.config, s.values, nil }

// read returns what Istio's Helm chart writes into the ConfigMap by default.
func read(chart string) (*settings, error) {
	template, err := fs.ReadFile(manifests.FS, chart+"/files/injection-template.yaml")
	if err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(map[string]any{"policy": "enabled", "templates": map[string]string{"sidecar": string(template)}})
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(manifests.FS, chart+"/values.yaml")
	if err != nil {
		return nil, err
	}
	var chartValues struct {
		Defaults map[string]any `json:"_internal_defaults_do_not_set"`
	}
	if err := yaml.Unmarshal(text, &chartValues); err != nil {
		return nil, err
	}
	all := chartValues.Defaults
	values, err := json.Marshal(map[string]any{
		"global": all["global"], "sidecarInjectorWebhook": all["sidecarInjectorWebhook"], "revision": all["revision"],
		"pilot": map[string]any{"cni": all["cni"], "env": all["env"]},
	})
	if err != nil {
		return nil, err
	}
	s := &settings{values: string(values)}
	s.config, err = inject.UnmarshalConfig(config)
	return s, err
}
