// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

// readCluster reads the configurations of a cluster and related objects. If it may not read some related objects, it
// prints a note, and some rules may miss problems.
func (o *Options) readCluster(ctx context.Context, s *screen.Screen) ([]*objects.Object, error) {
	config, err := o.Flags.Config()
	if err != nil {
		return nil, err
	}
	if o.Kubernetes == "" {
		o.Kubernetes = versionOf(ctx, config)
	}
	var all []*objects.Object
	for _, name := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		found, err := cluster.List(ctx, config, resource("admissionregistration.k8s.io", "v1", name))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	around := []schema.GroupVersionResource{
		resource("", "v1", "namespaces"), resource("", "v1", "services"),
		resource("apps", "v1", "deployments"), resource("apps", "v1", "statefulsets"), resource("apps", "v1", "daemonsets"),
		resource("autoscaling", "v2", "horizontalpodautoscalers"),
	}
	if anyExact(all) { // only rule AK304 needs CustomResourceDefinitions, and they are large
		around = append(around, resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"))
	}
	var missing []string
	var firstErr error
	for _, r := range around {
		found, err := cluster.List(ctx, config, r)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			missing, firstErr = append(missing, r.Resource), cmp.Or(firstErr, err)
			continue
		}
		all = append(all, found...)
	}
	if missing != nil {
		s.Note("some rules may miss problems, because %s could not be read: %s", strings.Join(missing, ", "), firstErr)
	}
	return all, nil
}

// versionOf returns the version of the API server, or "" if it cannot be read.
func versionOf(ctx context.Context, config *rest.Config) string {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return ""
	}
	text, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	var info version.Info
	if err != nil || json.Unmarshal(text, &info) != nil {
		return ""
	}
	return info.GitVersion
}

func anyExact(configurations []*objects.Object) bool {
	for _, o := range configurations {
		if strings.Contains(string(o.JSON), `"matchPolicy":"Exact"`) {
			return true
		}
	}
	return false
}
