// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Sets are objects grouped by their role for the API server. Each group keeps the order in which objects were read.
type Sets struct {
	Mutating   []Decoded[admissionregistrationv1.MutatingWebhookConfiguration]
	Validating []Decoded[admissionregistrationv1.ValidatingWebhookConfiguration]
	Namespaces []Decoded[corev1.Namespace]
	CRDs       []Decoded[apiextensionsv1.CustomResourceDefinition]
	// Others are the objects of all other kinds.
	Others []*Object
}

// Decoded is an object and its value as a Go type.
type Decoded[T any] struct {
	*Object
	Value *T
	// Unknown are errors for unknown and duplicate fields. The API server drops unknown fields, and
	// all but the last of the duplicates.
	Unknown []error
}

// Values returns the decoded values of a group, without their sources.
func Values[T any](group []Decoded[T]) (all []*T) {
	for _, d := range group {
		all = append(all, d.Value)
	}
	return all
}

// Sort groups objects. Webhook configurations of v1beta1 become v1, with the defaults of v1beta1 where those
// of v1 differ. [Object.GVK] keeps the version. No other defaults are set.
func Sort(all []*Object) (*Sets, error) {
	sets := &Sets{}
	for _, o := range all {
		if err := sets.sort(o); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

func (s *Sets) sort(o *Object) error {
	gk := o.GVK.GroupKind()
	known := o.GVK.Version == "v1"
	registration := o.GVK.Group == admissionregistrationv1.GroupName
	switch old := registration && o.GVK.Version == "v1beta1"; {
	case registration && gk.Kind == "MutatingWebhookConfiguration" && (known || old):
		c, err := add(&s.Mutating, o)
		for i := 0; old && err == nil && i < len(c.Webhooks); i++ {
			w := &c.Webhooks[i]
			fillOld(&w.FailurePolicy, &w.MatchPolicy, &w.SideEffects, &w.TimeoutSeconds, &w.AdmissionReviewVersions)
		}
		return err
	case registration && gk.Kind == "ValidatingWebhookConfiguration" && (known || old):
		c, err := add(&s.Validating, o)
		for i := 0; old && err == nil && i < len(c.Webhooks); i++ {
			w := &c.Webhooks[i]
			fillOld(&w.FailurePolicy, &w.MatchPolicy, &w.SideEffects, &w.TimeoutSeconds, &w.AdmissionReviewVersions)
		}
		return err
	case known && gk == schema.GroupKind{Kind: "Namespace"}:
		_, err := add(&s.Namespaces, o)
		return err
	case known && gk == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
		_, err := add(&s.CRDs, o)
		return err
	default:
		s.Others = append(s.Others, o)
	}
	return nil
}

// add decodes an object and adds it to a group. It returns the value.
func add[T any](group *[]Decoded[T], o *Object) (*T, error) {
	d := Decoded[T]{Object: o, Value: new(T)}
	var err error
	if d.Unknown, err = kjson.UnmarshalStrict(o.JSON, d.Value); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", o.Where(), o, err)
	}
	*group = append(*group, d)
	return d.Value, nil
}

// fillOld sets the defaults of v1beta1, which Kubernetes served until 1.21.
func fillOld(failure **admissionregistrationv1.FailurePolicyType, match **admissionregistrationv1.MatchPolicyType,
	effects **admissionregistrationv1.SideEffectClass, timeout **int32, versions *[]string) {
	fill(failure, admissionregistrationv1.Ignore)
	fill(match, admissionregistrationv1.Exact)
	fill(effects, admissionregistrationv1.SideEffectClassUnknown)
	fill(timeout, 30)
	if len(*versions) == 0 {
		*versions = []string{"v1beta1"}
	}
}

func fill[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
