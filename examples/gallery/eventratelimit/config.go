// SPDX-License-Identifier: Apache-2.0

package eventratelimit

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/examples/gallery/configfile"
)

// A Config lists the limits, in the format of the original's configuration file.
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// Limits lists the limits. An Event must be within all of them. As in the original, several may have the same type.
	Limits []Limit `json:"limits"`
}

// A Limit limits the Events that share a bucket. A new bucket has Burst tokens, and each Event takes one.
type Limit struct {
	// Type selects which Events share a bucket.
	Type LimitType `json:"type"`
	// QPS is the number of tokens that a bucket gets in a second.
	QPS int32 `json:"qps"`
	// Burst is the largest number of tokens in a bucket.
	Burst int32 `json:"burst"`
	// CacheSize is the largest number of buckets. If there are more, the bucket that has not been used for the longest
	// time is forgotten. Zero means 4096. A limit of type Server has one bucket.
	CacheSize int32 `json:"cacheSize,omitempty"`
}

const defaultCacheSize = 4096

// A LimitType selects which Events share a bucket.
type LimitType string

// The types of limits.
const (
	Server          LimitType = "Server"          // all Events
	Namespace       LimitType = "Namespace"       // the Events of one namespace
	User            LimitType = "User"            // the Events that one user sends
	SourceAndObject LimitType = "SourceAndObject" // the Events with the same source and the same involved object
)

const (
	apiVersion = "eventratelimit.admission.k8s.io/v1alpha1"
	kind       = "Configuration"
)

// Load reads a configuration file in the format of Kubernetes' EventRateLimit. The error names the file, the
// line and the field.
func Load(file string) (Config, error) {
	return configfile.Load(file, configfile.Type{APIVersions: []string{apiVersion}, Kind: kind}, (*Config).check)
}

func (c *Config) check() (errs field.ErrorList) {
	limits := field.NewPath("limits")
	if len(c.Limits) == 0 {
		errs = append(errs, field.Required(limits, "must not be empty"))
	}
	for i, l := range c.Limits {
		at := limits.Index(i)
		if keys[l.Type] == nil {
			errs = append(errs, field.NotSupported(at.Child("type"), l.Type, []LimitType{Server, Namespace, User, SourceAndObject}))
		}
		if l.Burst <= 0 {
			errs = append(errs, field.Invalid(at.Child("burst"), l.Burst, "must be positive"))
		}
		if l.QPS <= 0 {
			errs = append(errs, field.Invalid(at.Child("qps"), l.QPS, "must be positive"))
		}
		if l.CacheSize < 0 && l.Type != Server {
			errs = append(errs, field.Invalid(at.Child("cacheSize"), l.CacheSize, "must not be negative"))
		}
	}
	return errs
}
