// SPDX-License-Identifier: Apache-2.0

package podnodeselector

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// A Config contains the node selectors of the cluster. The zero value adds no labels and allows all labels.
type Config struct {
	// Default is added to the node selectors of Pods in namespaces without the annotation.
	Default labels.Set
	// Allowed maps a namespace to the labels that the node selectors of its Pods may have. A namespace without an
	// entry, or with an empty one, has no such limit.
	Allowed map[string]labels.Set
}

// defaultKey is the key of the default selector in the configuration file. It is not a valid name for a namespace.
const defaultKey = "clusterDefaultNodeSelector"

// Load reads a configuration file of the original:
//
//	podNodeSelectorPluginConfig:
//	  clusterDefaultNodeSelector: env=test
//	  team-a: env=test,disk=ssd
//
// The error names the file and the field.
func Load(file string) (Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	var content struct {
		Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
	}
	if err := yaml.UnmarshalStrict(data, &content); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	config := Config{Allowed: map[string]labels.Set{}}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(content.Selectors)) {
		set, err := labels.ConvertSelectorToLabelsMap(content.Selectors[name])
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath("podNodeSelectorPluginConfig").Key(name), content.Selectors[name], err.Error()))
		}
		config.Allowed[name] = set
	}
	config.Default = config.Allowed[defaultKey]
	delete(config.Allowed, defaultKey)
	if len(errs) > 0 {
		return Config{}, fmt.Errorf("%s: %w", file, errs.ToAggregate())
	}
	return config, nil
}
