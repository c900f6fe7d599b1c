// SPDX-License-Identifier: Apache-2.0

package podnodeselector

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/examples/gallery/configfile"
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
// The error names the file, the line and the field.
func Load(file string) (Config, error) {
	config := Config{Allowed: map[string]labels.Set{}}
	_, err := configfile.Load(file, configfile.Type{}, func(content *struct {
		Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
	}) field.ErrorList {
		return config.add(content.Selectors)
	})
	if err != nil {
		return Config{}, err
	}
	return config, nil
}

// add adds the selectors of a file. It returns the errors in them.
func (c *Config) add(selectors map[string]string) (errs field.ErrorList) {
	root := field.NewPath("podNodeSelectorPluginConfig")
	for _, name := range slices.Sorted(maps.Keys(selectors)) {
		at, selector := root.Key(name), selectors[name]
		set, err := labels.ConvertSelectorToLabelsMap(selector)
		if err != nil {
			errs = append(errs, field.Invalid(at, selector, err.Error()))
		} else if key := repeated(selector); key != "" {
			errs = append(errs, field.Invalid(at, selector, "sets "+key+" twice: remove one"))
		}
		if name == defaultKey {
			c.Default = set
			continue
		}
		c.Allowed[name] = set
		for _, problem := range validation.IsDNS1123Label(name) {
			if configfile.Nearest(name, []string{defaultKey}) != "" {
				problem = "did you mean " + defaultKey + "?"
			}
			errs = append(errs, field.Invalid(at, name, "not a name of a namespace: "+problem))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	for _, name := range slices.Sorted(maps.Keys(c.Allowed)) {
		if allowed := c.Allowed[name]; len(allowed) > 0 && !isSubset(c.Default, allowed) {
			errs = append(errs, field.Invalid(root.Key(name), selectors[name], fmt.Sprintf("does not allow the default %s, "+
				"so every Pod there without an annotation on its namespace would be denied: allow it, or remove one of the two", selectors[defaultKey])))
		}
	}
	return errs
}

// repeated returns a key that a valid selector sets twice, or an empty string.
func repeated(selector string) string {
	keys := map[string]bool{}
	for label := range strings.SplitSeq(selector, ",") {
		key, _, _ := strings.Cut(label, "=")
		if key = strings.TrimSpace(key); keys[key] {
			return key
		}
		keys[key] = true
	}
	return ""
}
