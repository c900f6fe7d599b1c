// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"reflect"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/randfill"
)

// TestNoFieldOfARegistrationIsLost fills every field, so that it fails if a new Kubernetes version
// adds a field that Registration lacks.
func TestNoFieldOfARegistrationIsLost(t *testing.T) {
	fill := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 2)
	var m admissionregistrationv1.MutatingWebhook
	fill.Fill(&m)
	if got := FromMutating(m).AsMutating(m.ClientConfig, m.NamespaceSelector); !reflect.DeepEqual(got, m) {
		t.Errorf("\n got %+v\nwant %+v", got, m)
	}
	var v admissionregistrationv1.ValidatingWebhook
	fill.Fill(&v)
	if got := FromValidating(v).AsValidating(v.ClientConfig, v.NamespaceSelector); !reflect.DeepEqual(got, v) {
		t.Errorf("\n got %+v\nwant %+v", got, v)
	}
}
