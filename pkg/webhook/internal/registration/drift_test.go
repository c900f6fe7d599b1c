// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"reflect"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/randfill"
)

// TestNoFieldOfARegistrationIsLost fills every field of a webhook, converts it to a Registration and back, and expects
// the same values. It fails if a new Kubernetes version adds a field that the conversion drops.
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
