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

// Sets are objects sorted out by what they are to the API server, each set in the order in which
// they were read.
type Sets struct {
	Mutating   []Decoded[admissionregistrationv1.MutatingWebhookConfiguration]
	Validating []Decoded[admissionregistrationv1.ValidatingWebhookConfiguration]
	Namespaces []Decoded[corev1.Namespace]
	CRDs       []Decoded[apiextensionsv1.CustomResourceDefinition]
	// Others are all that is in none of the other sets.
	Others []*Object
}

// Decoded is an object with its Go type.
type Decoded[T any] struct {
	*Object
	Value *T
	// Unknown are fields that the type does not have, and fields that are there twice: the API server
	// drops the former, and all but the last of the latter.
	Unknown []error
}

// Sort sorts objects out. Webhook configurations of v1beta1 become those of v1, with what v1beta1
// fills in where v1 would fill in something else; [Object.GVK] tells them apart. Nothing else is
// filled in.
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

// fillOld fills in the defaults of v1beta1, as it was until Kubernetes 1.21.
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
