// SPDX-License-Identifier: Apache-2.0

package workloaddefaults

import (
	"fmt"
	"maps"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Config contains the requests for containers that have none. The zero value adds none.
type Config struct {
	Requests corev1.ResourceList `json:"requests"`
	// Workloads are custom kinds that the hook completes, besides the built-in ones.
	Workloads []webhook.Workload `json:"workloads"`
}

// Load reads a configuration file:
//
//	requests: {cpu: 100m, memory: 128Mi}
//	workloads:
//	- kind: {group: shop.example.com, version: v1, kind: Rollout}
//	  resource: rollouts
//	  path: spec.template # of the Pod template
//
// If file is empty, Load returns these requests and no workloads. The error names the file and the field.
func Load(file string) (Config, error) {
	if file == "" {
		return Config{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}}, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	var config Config
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	if err := config.check().ToAggregate(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
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
	for i, w := range c.Workloads {
		if w.Kind.Version == "" || w.Kind.Kind == "" || w.Resource == "" || w.Path == "" {
			errs = append(errs, field.Required(field.NewPath("workloads").Index(i), "set kind.version, kind.kind, resource and path"))
		}
	}
	return errs
}
