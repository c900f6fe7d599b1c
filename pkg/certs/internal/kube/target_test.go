// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

func testWebhooks(t *testing.T, c testCluster) {
	for _, kind := range []string{MutatingWebhookConfiguration, ValidatingWebhookConfiguration} {
		t.Run(kind, func(t *testing.T) {
			k := c.cluster(t)
			target, r := c.configuration(t, kind, "a.example.com", "b.example.com")
			before := kubetest.Get(t, r, target.Name)
			if got := bundles(mustRead(t, k, target)); got != "a.example.com= b.example.com=" {
				t.Errorf("got %s", got)
			}
			mustWrite(t, k, target, "one")
			mustWrite(t, k, target, "two")
			if got := bundles(mustRead(t, k, target)); got != "a.example.com=two b.example.com=two" {
				t.Errorf("got %s", got)
			}
			after := kubetest.Get(t, r, target.Name)
			wantOwned(t, after, `{"f:webhooks":{`+
				`"k:{\"name\":\"a.example.com\"}":{".":{},"f:clientConfig":{"f:caBundle":{}},"f:name":{}},`+
				`"k:{\"name\":\"b.example.com\"}":{".":{},"f:clientConfig":{"f:caBundle":{}},"f:name":{}}}}`)
			wantOnlyBundlesChanged(t, before, after)

			version := after.GetResourceVersion()
			mustWrite(t, k, target, "two")
			if got := kubetest.Get(t, r, target.Name).GetResourceVersion(); got != version {
				t.Error("the same bundle made a new version")
			}
			_, err := k.ReadTarget(t.Context(), Target{Kind: kind, Name: "none"})
			wantError(t, err, ErrNoTarget, kind+" none does not exist")
		})
	}
}

// wantOwned checks which fields the field manager owns, in the JSON of managedFields.
func wantOwned(t *testing.T, object *unstructured.Unstructured, want string) {
	t.Helper()
	var got []string
	for _, e := range object.GetManagedFields() {
		if e.Manager == testManager {
			got = append(got, fmt.Sprintf("%s %s", e.Operation, e.FieldsV1.GetRawBytes()))
		}
	}
	if diff := cmp.Diff(got, []string{"Apply " + want}); diff != "" {
		t.Errorf("owned fields, -got +want:\n%s", diff)
	}
}

// wantOnlyBundlesChanged compares two objects without their caBundles and the metadata that the API server writes.
func wantOnlyBundlesChanged(t *testing.T, before, after *unstructured.Unstructured) {
	t.Helper()
	strip := func(object *unstructured.Unstructured) map[string]any {
		content := object.DeepCopy().Object
		for _, path := range [][]string{
			{"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"status"},
			bundlePaths[CustomResourceDefinition], bundlePaths[APIService],
		} {
			unstructured.RemoveNestedField(content, path...)
		}
		webhooks, _, _ := unstructured.NestedSlice(content, "webhooks")
		for _, w := range webhooks {
			unstructured.RemoveNestedField(w.(map[string]any), "clientConfig", "caBundle")
		}
		if webhooks != nil {
			content["webhooks"] = webhooks
		}
		return content
	}
	if diff := cmp.Diff(strip(after), strip(before)); diff != "" {
		t.Errorf("more than bundles changed, -got +want:\n%s", diff)
	}
}

// The API server calls webhooks in the order of the list, so writing a caBundle must not change the order.
func testOrder(t *testing.T, c testCluster) {
	k := c.cluster(t)
	names := []string{"d.example.com", "a.example.com", "c.example.com", "b.example.com"}
	target, r := c.configuration(t, MutatingWebhookConfiguration, names...)
	for chosen := 1; chosen < 1<<len(names); chosen++ {
		some := target
		for i, name := range names {
			if chosen>>i&1 == 1 {
				some.Webhooks = append([]string{name}, some.Webhooks...)
			}
		}
		mustWrite(t, k, some, fmt.Sprint(chosen))
		var got []string
		for _, e := range mustRead(t, k, target).Entries {
			got = append(got, e.Name)
		}
		if diff := cmp.Diff(got, names); diff != "" {
			t.Fatalf("looking after %q, -got +want:\n%s", some.Webhooks, diff)
		}
		if chosen%5 == 0 { // the field manager stops owning a caBundle
			kubetest.Merge(t, r, target.Name, fmt.Sprintf(`{"metadata": {"managedFields": [{}]}, "webhooks": [%s]}`, kubetest.WebhookList(names...)))
		}
	}
}

func testSomeWebhooks(t *testing.T, c testCluster) {
	k := c.cluster(t)
	all, r := c.configuration(t, MutatingWebhookConfiguration, "a.example.com", "b.example.com", "c.example.com")
	two, one := all, all
	two.Webhooks = []string{"c.example.com", "a.example.com"}
	one.Webhooks = []string{"b.example.com"}
	mustWrite(t, k, two, "two")
	if got := bundles(mustRead(t, k, two)); got != "a.example.com=two c.example.com=two" {
		t.Errorf("got %s", got)
	}
	if got := bundles(mustRead(t, k, all)); got != "a.example.com=two b.example.com= c.example.com=two" {
		t.Errorf("got %s", got)
	}
	// An apply with the same field manager and only b would remove the other webhooks.
	mustWrite(t, k, one, "one")
	if got := bundles(mustRead(t, k, all)); got != "a.example.com=two b.example.com=one c.example.com=two" {
		t.Errorf("got %s", got)
	}
	other := *k
	other.fieldManager = "other"
	mustWrite(t, &other, one, "other")
	mustWrite(t, k, two, "three")
	if got := bundles(mustRead(t, k, all)); got != "a.example.com=three b.example.com=other c.example.com=three" {
		t.Errorf("got %s", got)
	}
	wrong := all
	wrong.Webhooks = []string{"a.example.com", "d.example.com"}
	if got := mustRead(t, k, wrong); len(got.Entries) != 1 || !slices.Equal(got.Missing, []string{"d.example.com"}) {
		t.Errorf("got %+v", got)
	}

	kubetest.Merge(t, r, all.Name, `{"webhooks": []}`)
	if got := mustRead(t, k, wrong); len(got.Entries) != 0 || len(got.Missing) != 2 {
		t.Errorf("got %+v", got)
	}
	mustWrite(t, k, all, "nobody") // nothing has to change
}

const testCRD = `{"metadata": {"name": "%[1]s.certs.example.com"}, "spec": {
	"group": "certs.example.com", "scope": "Namespaced", "names": {"plural": "%[1]s", "kind": "%[1]s"},
	"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
	"conversion": %[2]s}}`

const testConversion = `{"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
	"clientConfig": {"service": {"namespace": "none", "name": "none"}}}}`

const testAPIService = `{"metadata": {"name": "v1.%[1]s.example.com"}, "spec": {
	"group": "%[1]s.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100%[2]s}}`

func (c testCluster) crd(t *testing.T, plural, conversion string) (Target, dynamic.ResourceInterface) {
	t.Helper()
	const version = "apiextensions.k8s.io/v1"
	made := c.Create(t, version, "CustomResourceDefinition", kubetest.Parse(t, fmt.Sprintf(testCRD, plural, conversion)))
	return Target{Kind: CustomResourceDefinition, Name: made.GetName()}, c.Resource(version, "CustomResourceDefinition", "")
}

func (c testCluster) apiService(t *testing.T, group, more string) (Target, dynamic.ResourceInterface) {
	t.Helper()
	const version = "apiregistration.k8s.io/v1"
	made := c.Create(t, version, "APIService", kubetest.Parse(t, fmt.Sprintf(testAPIService, group, more)))
	return Target{Kind: APIService, Name: made.GetName()}, c.Resource(version, "APIService", "")
}

func testOtherKinds(t *testing.T, c testCluster) {
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	pem := string(ca.Bundle)
	rows := []struct {
		kind  string
		make  func(*testing.T) (Target, dynamic.ResourceInterface)
		owned string
	}{
		{CustomResourceDefinition, func(t *testing.T) (Target, dynamic.ResourceInterface) { return c.crd(t, "some", testConversion) },
			`{"f:spec":{"f:conversion":{"f:webhook":{"f:clientConfig":{"f:caBundle":{}}}}}}`},
		{APIService, func(t *testing.T) (Target, dynamic.ResourceInterface) {
			return c.apiService(t, "some", `, "service": {"namespace": "none", "name": "none"}`)
		}, `{"f:spec":{"f:caBundle":{}}}`},
	}
	for _, row := range rows {
		t.Run(row.kind, func(t *testing.T) {
			k := c.cluster(t)
			_, err := k.ReadTarget(t.Context(), Target{Kind: row.kind, Name: "v1.none.example.com"})
			wantError(t, err, ErrNoTarget, row.kind+" v1.none.example.com does not exist")

			target, r := row.make(t)
			before := kubetest.Get(t, r, target.Name)
			if got := bundles(mustRead(t, k, target)); got != "=" {
				t.Errorf("got %s", got)
			}
			stale := mustRead(t, k, target)
			until(t, k, target, func(state TargetState) error { // again if a controller writes the status meanwhile
				return k.WriteTarget(t.Context(), target, state, []byte(pem))
			})
			if got := bundles(mustRead(t, k, target)); got != "="+pem {
				t.Errorf("got %s", got)
			}
			wantError(t, k.WriteTarget(t.Context(), target, stale, []byte(pem+"\n")), ErrConflict, target.Name)
			after := kubetest.Get(t, r, target.Name)
			wantOwned(t, after, row.owned)
			wantOnlyBundlesChanged(t, before, after)

			if err := r.Delete(t.Context(), target.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// until repeats a write while it fails with a conflict, as a source does.
func until(t *testing.T, k *Client, target Target, write func(TargetState) error) {
	t.Helper()
	for {
		err := write(mustRead(t, k, target))
		if err == nil {
			return
		}
		if !errors.Is(err, ErrConflict) {
			t.Fatal(err)
		}
	}
}

func testWithoutBundle(t *testing.T, c testCluster) {
	crd, _ := c.crd(t, "plain", `{"strategy": "None"}`)
	local, _ := c.apiService(t, "local", "")
	skip, _ := c.apiService(t, "skip", `, "service": {"namespace": "none", "name": "none"}, "insecureSkipTLSVerify": true`)
	k := c.cluster(t)
	for _, row := range []struct {
		target Target
		is     error
		want   string
	}{
		{crd, ErrNoBundle, `it has no conversion webhook: spec.conversion.strategy is "None", not "Webhook"`},
		{local, ErrNoBundle, "it has no spec.service"},
		{skip, nil, "insecureSkipTLSVerify is true"},
	} {
		_, err := k.ReadTarget(t.Context(), row.target)
		wantError(t, err, row.is, row.want, row.target.Name)
	}
}

func testTargetConflicts(t *testing.T, c testCluster) {
	k := c.cluster(t)
	target, r := c.configuration(t, ValidatingWebhookConfiguration, "a.example.com")
	parent := t
	rows := []struct {
		why    string
		change func(t *testing.T)
	}{
		{"changed", func(t *testing.T) { kubetest.Merge(t, r, target.Name, `{"metadata": {"labels": {"a": "b"}}}`) }},
		{"deleted", func(t *testing.T) {
			if err := r.Delete(t.Context(), target.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		{"made anew", func(t *testing.T) {
			c.Create(parent, kubetest.Admission, target.Kind, kubetest.Parse(t, fmt.Sprintf(
				`{"metadata": {"name": %q}, "webhooks": [%s]}`, target.Name, kubetest.WebhookList("a.example.com"))))
		}},
	}
	state := mustRead(t, k, target)
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			row.change(t)
			wantError(t, k.WriteTarget(t.Context(), target, state, []byte("late")), ErrConflict, target.Name)
			list, err := r.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + target.Name})
			if err != nil {
				t.Fatal(err)
			}
			if row.why == "deleted" && len(list.Items) > 0 {
				t.Errorf("it was made again: %v", list.Items)
			}
			if row.why != "deleted" && bundles(mustRead(t, k, target)) != "a.example.com=" {
				t.Error("it was written")
			}
		})
	}
}

// testTargetRaces has many goroutines add a byte to the caBundle of one target at once. If several of them have read
// the same version, only one may write, so no byte may be lost.
func testTargetRaces(t *testing.T, c testCluster) {
	target, _ := c.configuration(t, MutatingWebhookConfiguration, "a.example.com", "b.example.com")
	k := c.cluster(t)
	const writers, each = 10, 3
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for done := 0; done < each; {
				state, err := k.ReadTarget(t.Context(), target)
				if err != nil {
					t.Error(err)
					return
				}
				switch err := k.WriteTarget(t.Context(), target, state, append(state.Entries[0].Bundle, 'x')); {
				case err == nil:
					done++
				case !errors.Is(err, ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	want := strings.Repeat("x", writers*each)
	if got := bundles(mustRead(t, k, target)); got != "a.example.com="+want+" b.example.com="+want {
		t.Errorf("got %s", got)
	}
}
