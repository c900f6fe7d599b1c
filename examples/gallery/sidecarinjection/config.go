// SPDX-License-Identifier: Apache-2.0

package sidecarinjection

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/examples/gallery/configfile"
)

// A Config contains the settings of one revision of the injector.
type Config struct {
	// Revision is the revision that this injector serves. Empty means "default".
	Revision string `json:"revision,omitempty"`
	// Image is the image of the proxy. It is required.
	Image string `json:"image"`
	// HoldApplicationUntilProxyStarts makes the other containers wait for the proxy, unless an annotation says otherwise.
	// A native sidecar ignores this field, because the kubelet always starts it first.
	HoldApplicationUntilProxyStarts bool `json:"holdApplicationUntilProxyStarts,omitempty"`
	// NativeSidecars makes the proxy an init container that keeps running, unless an annotation says otherwise. It takes
	// precedence over HoldApplicationUntilProxyStarts.
	NativeSidecars bool `json:"nativeSidecars,omitempty"`
}

// Load reads a configuration file in YAML with the fields of [Config]. The error names the file, the line and
// the field.
func Load(file string) (Config, error) {
	return configfile.Load(file, configfile.Type{}, (*Config).check)
}

func (c *Config) check() (errs field.ErrorList) {
	for _, problem := range validation.IsDNS1123Label(c.revision()) {
		errs = append(errs, field.Invalid(field.NewPath("revision"), c.Revision, problem))
	}
	switch c.Image {
	case "":
		errs = append(errs, field.Required(field.NewPath("image"), "set the image of the proxy"))
	case autoImage:
		errs = append(errs, field.Invalid(field.NewPath("image"), c.Image, "this value stands for the image of the injector"))
	}
	return errs
}
