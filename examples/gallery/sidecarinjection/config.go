// SPDX-License-Identifier: Apache-2.0

package sidecarinjection

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// A Config contains the settings of one revision of the injector.
type Config struct {
	// Revision is the revision that this injector serves. Empty means "default".
	Revision string `json:"revision,omitempty"`
	// Image is the image of the proxy. It is required.
	Image string `json:"image"`
	// HoldApplicationUntilProxyStarts makes the other containers wait for the proxy, unless an annotation says otherwise.
	HoldApplicationUntilProxyStarts bool `json:"holdApplicationUntilProxyStarts,omitempty"`
	// NativeSidecars makes the proxy an init container that keeps running, unless an annotation says otherwise.
	NativeSidecars bool `json:"nativeSidecars,omitempty"`
}

// Load reads a configuration file in YAML with the fields of [Config]. The error names the file and the field.
func Load(file string) (Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	var config Config
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(config.revision()) {
		errs = append(errs, field.Invalid(field.NewPath("revision"), config.Revision, problem))
	}
	switch config.Image {
	case "":
		errs = append(errs, field.Required(field.NewPath("image"), "set the image of the proxy"))
	case autoImage:
		errs = append(errs, field.Invalid(field.NewPath("image"), config.Image, "this value stands for the image of the injector"))
	}
	if len(errs) > 0 {
		return Config{}, fmt.Errorf("%s: %w", file, errs.ToAggregate())
	}
	return config, nil
}
