// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/admission"
	admissionapi "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/admission/api/scheme"
	admissionapiv1 "k8s.io/pod-security-admission/admission/api/v1"
	"k8s.io/pod-security-admission/admission/api/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"

	"github.com/admitkit/admitkit/examples/gallery/configfile"
	"github.com/admitkit/admitkit/pkg/reads"
)

// A Config contains the policy for namespaces without labels, and the users, namespaces and runtime classes that are
// exempt. [Load] returns one.
type Config = admissionapi.PodSecurityConfiguration

// Load reads a configuration file of the original:
//
//	apiVersion: pod-security.admission.config.k8s.io/v1
//	kind: PodSecurityConfiguration
//	defaults:
//	  enforce: baseline
//	exemptions:
//	  namespaces: [monitoring]
//
// The versions v1beta1 and v1alpha1, which have the same fields, are also accepted. If file is empty, Load returns the
// defaults: every namespace without labels is privileged, and nothing is exempt. The error names the file, the line and
// the field.
func Load(file string) (*Config, error) {
	if file == "" {
		return load.LoadFromData(nil)
	}
	config := &Config{}
	_, err := configfile.Load(file, fileType(), func(content *admissionapiv1.PodSecurityConfiguration) field.ErrorList {
		scheme.Scheme.Default(content)
		if err := scheme.Scheme.Convert(content, config, nil); err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		return validation.ValidatePodSecurityConfiguration(config)
	})
	if err != nil {
		return nil, err
	}
	return config, nil
}

func fileType() configfile.Type {
	const group = admissionapiv1.GroupName
	return configfile.Type{APIVersions: []string{group + "/v1", group + "/v1beta1", group + "/v1alpha1"}, Kind: "PodSecurityConfiguration"}
}

// newPolicy returns the library's policy. The error lists what is missing.
func newPolicy(namespaces *reads.Reader[*corev1.Namespace], pods admission.PodLister, config *Config) (*admission.Admission, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	p := &admission.Admission{
		Configuration: config, Evaluator: evaluator, Metrics: noMetrics{},
		NamespaceGetter: namespaceGetter{namespaces}, PodLister: pods, PodSpecExtractor: admission.DefaultPodSpecExtractor{},
	}
	if err := p.CompleteConfiguration(); err != nil {
		return nil, err
	}
	return p, p.ValidateConfiguration()
}

// noMetrics records nothing: package metrics of admitkit counts the calls of each hook by their outcome.
type noMetrics struct{}

func (noMetrics) RecordEvaluation(metrics.Decision, api.LevelVersion, metrics.Mode, api.Attributes) {}
func (noMetrics) RecordExemption(api.Attributes)                                                    {}
func (noMetrics) RecordError(bool, api.Attributes)                                                  {}
