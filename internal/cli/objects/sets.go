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
		c, err := decoded[admissionregistrationv1.MutatingWebhookConfiguration](o)
		if err != nil {
			return err
		}
		if old {
			for i := range c.Value.Webhooks {
				w := &c.Value.Webhooks[i]
				fillOld(&w.FailurePolicy, &w.MatchPolicy, &w.SideEffects, &w.TimeoutSeconds, &w.AdmissionReviewVersions)
			}
		}
		s.Mutating = append(s.Mutating, c)
	case registration && gk.Kind == "ValidatingWebhookConfiguration" && (known || old):
		c, err := decoded[admissionregistrationv1.ValidatingWebhookConfiguration](o)
		if err != nil {
			return err
		}
		if old {
			for i := range c.Value.Webhooks {
				w := &c.Value.Webhooks[i]
				fillOld(&w.FailurePolicy, &w.MatchPolicy, &w.SideEffects, &w.TimeoutSeconds, &w.AdmissionReviewVersions)
			}
		}
		s.Validating = append(s.Validating, c)
	case known && gk == schema.GroupKind{Kind: "Namespace"}:
		n, err := decoded[corev1.Namespace](o)
		if err != nil {
			return err
		}
		s.Namespaces = append(s.Namespaces, n)
	case known && gk == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
		d, err := decoded[apiextensionsv1.CustomResourceDefinition](o)
		if err != nil {
			return err
		}
		s.CRDs = append(s.CRDs, d)
	default:
		s.Others = append(s.Others, o)
	}
	return nil
}

func decoded[T any](o *Object) (Decoded[T], error) {
	d := Decoded[T]{Object: o, Value: new(T)}
	var err error
	if d.Unknown, err = kjson.UnmarshalStrict(o.JSON, d.Value); err != nil {
		return d, fmt.Errorf("%s: %s: %w", o.Where(), o, err)
	}
	return d, nil
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
