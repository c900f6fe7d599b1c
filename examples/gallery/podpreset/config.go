// SPDX-License-Identifier: Apache-2.0

package podpreset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/examples/gallery/configfile"
)

// A Preset lists the parts that are added to the Pods of its namespace that match the selector. It has the format of
// settings.k8s.io/v1alpha1. An empty selector matches all Pods.
type Preset struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
}

// A Spec contains the selector and the parts of a preset. Each mount must refer to a volume of the preset.
type Spec struct {
	Selector     metav1.LabelSelector   `json:"selector"`
	Env          []corev1.EnvVar        `json:"env,omitempty"`
	EnvFrom      []corev1.EnvFromSource `json:"envFrom,omitempty"`
	Volumes      []corev1.Volume        `json:"volumes,omitempty"`
	VolumeMounts []corev1.VolumeMount   `json:"volumeMounts,omitempty"`
}

// hash returns a short hash of the spec. It shows users whether a Pod has the current version of the preset.
func (p Preset) hash() string {
	data, err := json.Marshal(p.Spec)
	if err != nil {
		return "" // the types above always have a JSON form
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

const (
	apiVersion = "settings.k8s.io/v1alpha1"
	kind       = "PodPreset"
)

// Load reads a file with a YAML list of presets:
//
//	# presets.yaml
//	- apiVersion: settings.k8s.io/v1alpha1
//	  kind: PodPreset
//	  metadata: {namespace: team-a, name: database}
//	  spec:
//	    selector: {matchLabels: {role: frontend}}
//	    env: [{name: DB_PORT, value: "6379"}]
//	    volumes: [{name: cache, emptyDir: {}}]
//	    volumeMounts: [{name: cache, mountPath: /cache}]
//
// The error names the file, the line and the field.
func Load(file string) ([]Preset, error) {
	return configfile.Load(file, configfile.Type{}, check)
}

func check(all *[]Preset) (errs field.ErrorList) {
	presets := *all
	var root *field.Path
	for i, p := range presets {
		at := root.Index(i)
		errs = append(errs, p.validate(at)...)
		if slices.ContainsFunc(presets[:i], func(other Preset) bool { return other.Namespace == p.Namespace && other.Name == p.Name }) {
			errs = append(errs, field.Duplicate(at.Child("metadata", "name"), p.Name))
		}
	}
	if len(errs) == 0 {
		errs = contradictions(presets)
	}
	return errs
}

func (p Preset) validate(at *field.Path) (errs field.ErrorList) {
	if p.APIVersion != apiVersion {
		errs = append(errs, field.NotSupported(at.Child("apiVersion"), p.APIVersion, []string{apiVersion}))
	}
	if p.Kind != kind {
		errs = append(errs, field.NotSupported(at.Child("kind"), p.Kind, []string{kind}))
	}
	if p.Namespace == "" {
		errs = append(errs, field.Required(at.Child("metadata", "namespace"), "a preset is for the Pods of one namespace"))
	} else if problems := validation.IsDNS1123Label(p.Namespace); len(problems) > 0 {
		errs = append(errs, field.Invalid(at.Child("metadata", "namespace"), p.Namespace, strings.Join(problems, "; ")))
	}
	if problems := validation.IsQualifiedName(AppliedPrefix + p.Name); p.Name == "" || len(problems) > 0 {
		errs = append(errs, field.Invalid(at.Child("metadata", "name"), p.Name, "the name is part of an annotation: "+strings.Join(problems, "; ")))
	}
	spec := at.Child("spec")
	errs = append(errs, metav1validation.ValidateLabelSelector(&p.Spec.Selector, metav1validation.LabelSelectorValidationOptions{}, spec.Child("selector"))...)
	if s := p.Spec; len(s.Env)+len(s.EnvFrom)+len(s.Volumes)+len(s.VolumeMounts) == 0 {
		errs = append(errs, field.Required(spec, "a preset needs env, envFrom, volumes or volumeMounts"))
	}
	return append(errs, p.Spec.validate(spec)...)
}

// validate finds names and empty volumes that the API server would reject in every Pod.
func (s Spec) validate(at *field.Path) (errs field.ErrorList) {
	names := map[string]bool{}
	once := func(at *field.Path, key string) {
		if names[key] {
			errs = append(errs, field.Duplicate(at, strings.SplitN(key, " ", 2)[1]))
		}
		names[key] = true
	}
	for i, e := range s.Env {
		at := at.Child("env").Index(i).Child("name")
		for _, problem := range validation.IsRelaxedEnvVarName(e.Name) {
			errs = append(errs, field.Invalid(at, e.Name, problem))
		}
		once(at, "env "+e.Name)
	}
	for i, v := range s.Volumes {
		at := at.Child("volumes").Index(i)
		for _, problem := range validation.IsDNS1123Label(v.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, problem))
		}
		if v.VolumeSource == (corev1.VolumeSource{}) {
			errs = append(errs, field.Required(at, "a volume needs a source, such as emptyDir: {}"))
		}
		once(at.Child("name"), "volume "+v.Name)
	}
	for i, m := range s.VolumeMounts {
		at := at.Child("volumeMounts").Index(i)
		if !names["volume "+m.Name] {
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(at.Child("mountPath"), ""))
		}
		once(at.Child("name"), "mount "+m.Name)
	}
	return errs
}
