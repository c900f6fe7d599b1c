// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"reflect"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/randfill"
)

// TestNoFieldOfARegistrationIsLost fills every field, so that one which a new Kubernetes version
// adds is missed here before a user misses it.
func TestNoFieldOfARegistrationIsLost(t *testing.T) {
	fill := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 2)
	var m admissionregistrationv1.MutatingWebhook
	fill.Fill(&m)
	if got := fromMutating(m).mutatingWebhook(m.ClientConfig, m.NamespaceSelector); !reflect.DeepEqual(got, m) {
		t.Errorf("\n got %+v\nwant %+v", got, m)
	}
	var v admissionregistrationv1.ValidatingWebhook
	fill.Fill(&v)
	if got := fromValidating(v).validatingWebhook(v.ClientConfig, v.NamespaceSelector); !reflect.DeepEqual(got, v) {
		t.Errorf("\n got %+v\nwant %+v", got, v)
	}
}
