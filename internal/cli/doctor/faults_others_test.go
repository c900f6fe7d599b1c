// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// These faults are in conversion webhooks and aggregated API servers, which use the Service of the world. NAME and
// BUNDLE stand for its namespace and the caBundle.
const (
	definitionYAML = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.NAME.example.com}
spec:
  group: NAME.example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        caBundle: BUNDLE
        service: {namespace: NAME, name: hook, path: /convert}
`
	apiServiceYAML = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.apis.NAME.example.com}
spec:
  group: apis.NAME.example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  caBundle: BUNDLE
  service: {namespace: NAME, name: hook}
`
)

const (
	theDefinition = "CustomResourceDefinition/widgets.NAME.example.com"
	theAPIService = "APIService/v1.apis.NAME.example.com"
)

var otherFaults = []fault{
	{name: "the Service of a conversion webhook is missing", want: "service-missing Service NAME/convert", after: apply(definitionYAML, "name: hook", "name: convert")},
	{name: "the caBundle of a conversion webhook is missing", want: "AK506 " + theDefinition, after: apply(definitionYAML, "caBundle: BUNDLE", "")},
	{name: "the caBundle of a conversion webhook is another", want: "certificate-untrusted SERVICE", after: func(t *testing.T, w *world) {
		w.ca = newAuthority(t)
		apply(definitionYAML)(t, w)
	}},
	{name: "the path of a conversion webhook is another", want: "wrong-path " + theDefinition, after: apply(definitionYAML, "/convert", "/conversion")},
	{name: "the Service of an aggregated API server is missing", want: "service-missing Service NAME/apis", after: apply(apiServiceYAML, "name: hook", "name: apis")},
	{name: "the caBundle of an aggregated API server is another", want: "certificate-untrusted SERVICE", after: func(t *testing.T, w *world) {
		w.ca = newAuthority(t)
		apply(apiServiceYAML)(t, w)
	}},
	{name: "an aggregated API server is not verified", want: "not-verified " + theAPIService, after: apply(apiServiceYAML, "caBundle: BUNDLE", "insecureSkipTLSVerify: true")},
	{name: "an aggregated API server does not serve its version", want: "unavailable " + theAPIService,
		before: func(w *world) { w.each(func(s *servedWebhook) { s.apis = "/apis/other/" }) },
		after: func(t *testing.T, w *world) {
			apply(apiServiceYAML)(t, w)
			w.awaitAvailable(t, "False")
		}},
}

// apply returns a function that stores an object. The pairs are replaced in its text.
func apply(text string, pairs ...string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		text := strings.NewReplacer(append(pairs, "NAME", w.namespace, "BUNDLE", base64.StdEncoding.EncodeToString(w.ca.bundle))...).Replace(text)
		text = strings.NewReplacer("NAME", w.namespace, "BUNDLE", base64.StdEncoding.EncodeToString(w.ca.bundle)).Replace(text)
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(text), object))
		resources := dynamic.NewForConfigOrDie(w.config).Resource(resource(object.GroupVersionKind().Group, "v1", strings.ToLower(object.GetKind())+"s"))
		must(t, second(resources.Create(t.Context(), object, metav1.CreateOptions{})))
		t.Cleanup(func() {
			must(t, resources.Delete(context.WithoutCancel(t.Context()), object.GetName(), metav1.DeleteOptions{}))
			must(t, wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
				_, err := resources.Get(ctx, object.GetName(), metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			}))
		})
	}
}

// awaitAvailable waits until the API server has checked the aggregated API server.
func (w *world) awaitAvailable(t *testing.T, status string) {
	t.Helper()
	resources := dynamic.NewForConfigOrDie(w.config).Resource(resource("apiregistration.k8s.io", "v1", "apiservices"))
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		object, err := resources.Get(ctx, "v1.apis."+w.namespace+".example.com", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		last = fmt.Sprint(conditions)
		return strings.Contains(last, "status:"+status+" type:Available"), nil
	})
	if err != nil {
		t.Fatalf("the condition of the APIService is %s: %v", last, err)
	}
}
