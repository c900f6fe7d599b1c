// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/admission"
	admissionapi "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/admission/api/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"

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
// If file is empty, Load returns the defaults: every namespace without labels is privileged, and nothing is exempt. The
// error names the file and the field.
func Load(file string) (*Config, error) {
	config, err := load.LoadFromFile(file)
	if err == nil {
		err = validation.ValidatePodSecurityConfiguration(config).ToAggregate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
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
