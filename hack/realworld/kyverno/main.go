// SPDX-License-Identifier: Apache-2.0

// Command kyverno serves policies of Kyverno's own tests on a loopback address, which it prints. Each policy has the
// path of its name, as a policy with its own webhook has.
package main

import (
	"context"
	"embed"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/kyverno/kyverno/pkg/clients/dclient"
	"github.com/kyverno/kyverno/pkg/config"
	"github.com/kyverno/kyverno/pkg/policycache"
	"github.com/kyverno/kyverno/pkg/utils/yaml"
	"github.com/kyverno/kyverno/pkg/webhooks/handlers"
	"github.com/kyverno/kyverno/pkg/webhooks/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:embed policies
var policies embed.FS

// kinds are those of the policies.
var kinds = map[schema.GroupVersionResource]string{
	{Version: "v1", Resource: "pods"}:                       "Pod",
	{Version: "v1", Resource: "replicationcontrollers"}:     "ReplicationController",
	{Version: "v1", Resource: "services"}:                   "Service",
	{Group: "apps", Version: "v1", Resource: "replicasets"}: "ReplicaSet",
	{Group: "batch", Version: "v1", Resource: "cronjobs"}:   "CronJob",
	{Group: "batch", Version: "v1", Resource: "jobs"}:       "Job",
}

func main() {
	log.Fatal(run())
}

func run() error {
	discovery, err := discovery()
	if err != nil {
		return err
	}
	files, err := policies.ReadDir("policies")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for _, file := range files {
		text, err := policies.ReadFile("policies/" + file.Name())
		if err != nil {
			return err
		}
		all, _, _, _, _, _, _, err := yaml.GetPolicy(text)
		if err != nil {
			return err
		}
		cache := policycache.NewCache()
		for _, policy := range all {
			if err := cache.Set(policy.GetName(), policy, discovery); err != nil {
				return err
			}
			mux.Handle("/mutate/fail/finegrained/"+policy.GetName(), handler(cache, discovery))
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mux)
}

// handler returns the handler of the policies in a cache, with the filters of Kyverno's server that need no cluster.
func handler(cache policycache.Cache, discovery dclient.IDiscovery) http.Handler {
	hook := resource.NewFakeHandlers(context.Background(), cache)
	return handlers.FromAdmissionFunc("MUTATE", func(ctx context.Context, logger logr.Logger, request handlers.AdmissionRequest, start time.Time) handlers.AdmissionResponse {
		return hook.Mutate(ctx, logger, request, "all", start)
	}).WithFilter(config.NewDefaultConfiguration(false)).WithTopLevelGVK(discovery).WithAdmission(logr.Discard()).ToHandlerFunc("MUTATE")
}

// discovery returns the kinds of the policies, as the API server's discovery has them.
func discovery() (dclient.IDiscovery, error) {
	var resources []schema.GroupVersionResource
	for gvr := range kinds {
		resources = append(resources, gvr)
	}
	fake := dclient.NewFakeDiscoveryClient(resources)
	for gvr, kind := range kinds {
		fake.AddGVRToGVKMapping(gvr, gvr.GroupVersion().WithKind(kind))
	}
	for resource, kind := range map[string]string{"daemonsets": "DaemonSet", "deployments": "Deployment", "statefulsets": "StatefulSet"} {
		gv := schema.GroupVersion{Group: "apps", Version: "v1"}
		fake.AddGVRToGVKMapping(gv.WithResource(resource), gv.WithKind(kind))
	}
	return fake, nil
}
