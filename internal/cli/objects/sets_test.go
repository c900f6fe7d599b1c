// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

const mixed = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {tier: web}}}
---
apiVersion: v1
kind: List
items:
- apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingWebhookConfiguration
  metadata: {name: new}
  webhooks: [{name: new.example.com, failurepolicy: Ignore}]
- apiVersion: admissionregistration.k8s.io/v1beta1
  kind: ValidatingWebhookConfiguration
  metadata: {name: old}
  webhooks: [{name: old.example.com}, {name: own.example.com, failurePolicy: Fail, timeoutSeconds: 2, admissionReviewVersions: [v1]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: policy}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: shops.example.com}}
---
{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: old.example.com}}
---
{apiVersion: example.com/v1, kind: Namespace, metadata: {name: not-a-namespace}}
`

func TestSort(t *testing.T) {
	found, err := parse("x.yaml", []byte(mixed))
	if err != nil {
		t.Fatal(err)
	}
	sets, err := Sort(found)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	add := func(sort string, o *Object) { got = append(got, sort+" "+o.String()) }
	for _, o := range sets.Mutating {
		add("mutating", o.Object)
	}
	for _, o := range sets.Validating {
		add("validating", o.Object)
	}
	for _, o := range sets.Namespaces {
		add("namespace", o.Object)
	}
	for _, o := range sets.CRDs {
		add("definition", o.Object)
	}
	for _, o := range sets.Others {
		add("other", o)
	}
	want := []string{
		"mutating MutatingWebhookConfiguration new",
		"validating ValidatingWebhookConfiguration old",
		"namespace Namespace shop",
		"definition CustomResourceDefinition shops.example.com",
		"other ValidatingAdmissionPolicy policy",
		"other CustomResourceDefinition old.example.com",
		"other Namespace not-a-namespace",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if unknown := sets.Mutating[0].Unknown; len(unknown) != 1 || !strings.Contains(unknown[0].Error(), `"webhooks[0].failurepolicy"`) {
		t.Errorf("unknown fields %v", unknown)
	}
	if w := sets.Mutating[0].Value.Webhooks[0]; w.FailurePolicy != nil || w.TimeoutSeconds != nil {
		t.Errorf("a default was set: %+v", w)
	}
	if sets.Namespaces[0].Value.Labels["tier"] != "web" {
		t.Errorf("labels %v", sets.Namespaces[0].Value.Labels)
	}
}

// TestSortFillsInOld checks the defaults of v1beta1 that differ from those of v1.
func TestSortFillsInOld(t *testing.T) {
	found, err := parse("x.yaml", []byte(mixed))
	if err != nil {
		t.Fatal(err)
	}
	sets, err := Sort(found)
	if err != nil {
		t.Fatal(err)
	}
	filled := admissionregistrationv1.ValidatingWebhook{
		Name:                    "old.example.com",
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Exact),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassUnknown),
		TimeoutSeconds:          ptr.To[int32](30),
		AdmissionReviewVersions: []string{"v1beta1"},
	}
	own := filled
	own.Name, own.FailurePolicy, own.TimeoutSeconds, own.AdmissionReviewVersions =
		"own.example.com", ptr.To(admissionregistrationv1.Fail), ptr.To[int32](2), []string{"v1"}
	if diff := cmp.Diff([]admissionregistrationv1.ValidatingWebhook{filled, own}, sets.Validating[0].Value.Webhooks); diff != "" {
		t.Error(diff)
	}
}

func TestSortErrors(t *testing.T) {
	found, err := parse("x.yaml", []byte("\n{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: 3}"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Sort(found)
	if err == nil || !strings.HasPrefix(err.Error(), "x.yaml:2: MutatingWebhookConfiguration a: ") {
		t.Error(err)
	}
}
