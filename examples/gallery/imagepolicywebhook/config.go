// SPDX-License-Identifier: Apache-2.0

package imagepolicywebhook

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/examples/gallery/configfile"
)

// A Config sets how to reach the service, and how to treat its answers.
type Config struct {
	// KubeConfigFile is a kubeconfig whose cluster is the service. It is required.
	KubeConfigFile string
	// AllowFor is how long an answer that allows is kept, and DenyFor how long any other answer is kept. Zero means not
	// at all.
	AllowFor, DenyFor time.Duration
	// Backoff is the pause between the first and the second of up to five attempts. Later pauses are longer. Zero means
	// no pause.
	Backoff time.Duration
	// DefaultAllow admits a Pod if the service fails. Otherwise the Pod is denied.
	DefaultAllow bool
	// OpenAfter is passed on to external.Options: after this many questions without an answer, the service is not asked
	// for some time. DefaultAllow disables it. The original has no such limit, and its configuration file has no such
	// field.
	OpenAfter int
}

// Load reads a configuration file of the original:
//
//	imagePolicy:
//	  kubeConfigFile: /path/to/kubeconfig
//	  allowTTL: 300      # seconds; this is the default
//	  denyTTL: 30        # seconds; this is the default
//	  retryBackoff: 500  # milliseconds; this is the default
//	  defaultAllow: false
//
// Zero means the default, and -1 means none. The error names the file, the line and the field.
func Load(file string) (config Config, err error) {
	_, err = configfile.Load(file, configfile.Type{}, func(in *content) (errs field.ErrorList) {
		config, errs = in.config()
		return errs
	})
	if err != nil {
		return Config{}, err
	}
	return config, nil
}

type content struct {
	ImagePolicy struct {
		KubeConfigFile string `json:"kubeConfigFile"`
		AllowTTL       int64  `json:"allowTTL"`
		DenyTTL        int64  `json:"denyTTL"`
		RetryBackoff   int64  `json:"retryBackoff"`
		DefaultAllow   bool   `json:"defaultAllow"`
	} `json:"imagePolicy"`
}

func (c *content) config() (config Config, errs field.ErrorList) {
	in, at := c.ImagePolicy, field.NewPath("imagePolicy")
	if in.KubeConfigFile == "" {
		errs = append(errs, field.Required(at.Child("kubeConfigFile"), "name a kubeconfig whose cluster is the service"))
	} else if _, err := client(in.KubeConfigFile); err != nil { // checked here, because Hook does not know the file
		errs = append(errs, field.Invalid(at.Child("kubeConfigFile"), in.KubeConfigFile, "must be a kubeconfig whose cluster is the service: "+err.Error()))
	}
	duration := func(name string, value int64, unit, most, byDefault time.Duration) time.Duration {
		switch {
		case value == -1:
			return 0
		case value == 0:
			return byDefault
		case value < 0 || value > int64(most/unit):
			errs = append(errs, field.Invalid(at.Child(name), value, fmt.Sprintf("must be -1, 0, or between 1 and %d", most/unit)))
		}
		return time.Duration(value) * unit
	}
	return Config{
		KubeConfigFile: in.KubeConfigFile, DefaultAllow: in.DefaultAllow,
		AllowFor: duration("allowTTL", in.AllowTTL, time.Second, 30*time.Minute, 5*time.Minute),
		DenyFor:  duration("denyTTL", in.DenyTTL, time.Second, 30*time.Minute, 30*time.Second),
		Backoff:  duration("retryBackoff", in.RetryBackoff, time.Millisecond, 5*time.Minute, 500*time.Millisecond),
	}, errs
}
