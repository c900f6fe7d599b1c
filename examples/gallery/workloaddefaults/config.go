// SPDX-License-Identifier: Apache-2.0

package workloaddefaults

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/examples/gallery/configfile"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Config contains the requests for containers that have none. The zero value adds none.
type Config struct {
	Requests corev1.ResourceList
	// Workloads are custom kinds that the hook completes, besides the built-in ones.
	Workloads []webhook.Workload
}

// Load reads a configuration file:
//
//	requests: {cpu: 100m, memory: 128Mi}
//	workloads:
//	- kind: {group: shop.example.com, version: v1, kind: Rollout}
//	  resource: rollouts
//	  path: spec.template # of the Pod template
//
// If file is empty, Load returns these requests and no workloads. The error names the file, the line and the field.
func Load(file string) (Config, error) {
	if file == "" {
		return Config{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}}, nil
	}
	var config Config
	_, err := configfile.Load(file, configfile.Type{}, func(in *content) field.ErrorList {
		config = in.config()
		return config.check()
	})
	if err != nil {
		return Config{}, err
	}
	return config, nil
}

type content struct {
	Requests  corev1.ResourceList `json:"requests"`
	Workloads []struct {
		Kind struct {
			Group   string `json:"group"`
			Version string `json:"version"`
			Kind    string `json:"kind"`
		} `json:"kind"`
		Resource string `json:"resource"`
		Path     string `json:"path"`
	} `json:"workloads"`
}

func (c *content) config() Config {
	config := Config{Requests: c.Requests}
	for _, w := range c.Workloads {
		config.Workloads = append(config.Workloads, webhook.Workload{Kind: metav1.GroupVersionKind(w.Kind), Resource: w.Resource, Path: w.Path})
	}
	return config
}

// supported are the resources that containers can request without a limit.
var supported = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceEphemeralStorage, corev1.ResourceMemory}

func (c Config) check() (errs field.ErrorList) {
	at := field.NewPath("requests")
	if len(c.Requests) == 0 {
		errs = append(errs, field.Required(at, "set at least one request, such as cpu: 100m"))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Requests)) {
		if !slices.Contains(supported, name) {
			errs = append(errs, field.NotSupported(at.Key(string(name)), name, supported))
		} else if quantity := c.Requests[name]; quantity.Sign() <= 0 {
			errs = append(errs, field.Invalid(at.Key(string(name)), quantity.String(), "must be greater than zero"))
		}
	}
	return append(errs, c.checkWorkloads(field.NewPath("workloads"))...)
}

// builtIn are the kinds that the hook completes without configuration.
var builtIn = []schema.GroupKind{
	{Kind: "Pod"}, {Kind: "PodTemplate"}, {Kind: "ReplicationController"},
	{Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
	{Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
}

func (c Config) checkWorkloads(root *field.Path) (errs field.ErrorList) {
	for i, w := range c.Workloads {
		at := root.Index(i)
		kind := schema.GroupKind{Group: w.Kind.Group, Kind: w.Kind.Kind}
		required := func(at *field.Path, value, what string) {
			if value == "" {
				errs = append(errs, field.Required(at, what))
			}
		}
		required(at.Child("kind", "version"), w.Kind.Version, "set the version of the kind, such as v1")
		required(at.Child("kind", "kind"), w.Kind.Kind, "set the name of the kind, such as Rollout")
		required(at.Child("resource"), w.Resource, "set the plural name of the kind, such as rollouts")
		required(at.Child("path"), w.Path, "set the path of the Pod template, such as spec.template")
		if w.Path != "" && slices.Contains(strings.Split(w.Path, "."), "") {
			errs = append(errs, field.Invalid(at.Child("path"), w.Path, "must be field names with dots between them, such as spec.template"))
		}
		switch {
		case slices.Contains(builtIn, kind):
			errs = append(errs, field.Forbidden(at.Child("kind"), kind.Kind+" is built in: remove it"))
		case slices.ContainsFunc(c.Workloads[:i], func(other webhook.Workload) bool { return other.Kind == w.Kind }):
			errs = append(errs, field.Duplicate(at.Child("kind"), kind.String()))
		}
	}
	return errs
}
