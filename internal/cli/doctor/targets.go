// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/doctor"
)

// readWebhooks reads the webhook configurations.
func (r *reader) readWebhooks(ctx context.Context) {
	for _, from := range []schema.GroupVersionResource{
		resource("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"),
		resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
	} {
		r.step("reading %s", from.Resource)
		err := cluster.Pages(ctx, r.client.Resource(from), metav1.ListOptions{}, func(page []unstructured.Unstructured) error {
			for i := range page {
				if err := r.addWebhooks(&page[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			r.gap("list", from.GroupResource(), "", err)
		}
	}
}

func (r *reader) addWebhooks(u *unstructured.Unstructured) error {
	var c admissionregistrationv1.ValidatingWebhookConfiguration // the other kind has the fields that are used here, too
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &c); err != nil {
		return err
	}
	r.s.Configurations = append(r.s.Configurations, u)
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		t := &doctor.Target{Kind: u.GetKind(), Name: c.Name, Webhook: w.Name, Index: i, Bundle: w.ClientConfig.CABundle,
			Fails:   w.FailurePolicy == nil || *w.FailurePolicy == admissionregistrationv1.Fail,
			Timeout: time.Duration(ptr.Deref(w.TimeoutSeconds, 10)) * time.Second}
		if s := w.ClientConfig.Service; s != nil {
			t.Backend, t.Path = serviceBackend(s.Namespace, s.Name, s.Port), ptr.Deref(s.Path, "")
		} else {
			t.Backend, t.Path = urlBackend(ptr.Deref(w.ClientConfig.URL, ""))
		}
		r.s.Targets = append(r.s.Targets, t)
		r.webhooks[t] = w
	}
	return nil
}

func serviceBackend(namespace, name string, port *int32) doctor.Backend {
	return doctor.Backend{Service: types.NamespacedName{Namespace: namespace, Name: name}, Port: ptr.Deref(port, 443)}
}

// urlBackend splits a URL into the address of the server, and the path.
func urlBackend(text string) (doctor.Backend, string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" { // the API server validates URLs
		return doctor.Backend{URL: text}, ""
	}
	return doctor.Backend{URL: u.Scheme + "://" + u.Host}, u.EscapedPath()
}

// A definition has the fields of a CustomResourceDefinition that are about conversion. The other fields can be large.
type definition struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Conversion *struct {
			Strategy string `json:"strategy"`
			Webhook  *struct {
				ClientConfig *admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`
			} `json:"webhook"`
		} `json:"conversion"`
	} `json:"spec"`
}

// readConversions reads the CustomResourceDefinitions with a conversion webhook.
func (r *reader) readConversions(ctx context.Context) {
	from := resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	r.step("reading %s", from.Resource)
	// Definitions can have hundreds of kilobytes each, so their pages are small.
	err := cluster.Pages(ctx, r.client.Resource(from), metav1.ListOptions{Limit: 50}, func(page []unstructured.Unstructured) error {
		for _, u := range page {
			r.step("reading %s %s", from.Resource, u.GetName())
			var d definition
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
				return err
			}
			r.addConversion(&d)
		}
		return nil
	})
	if err != nil {
		r.gap("list", from.GroupResource(), "", err)
	}
}

func (r *reader) addConversion(d *definition) {
	c := d.Spec.Conversion
	if c == nil || c.Strategy != "Webhook" || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return
	}
	client := c.Webhook.ClientConfig
	t := &doctor.Target{Kind: doctor.Conversion, Name: d.Name, Bundle: client.CABundle, Fails: true, Timeout: 30 * time.Second}
	if s := client.Service; s != nil {
		t.Backend, t.Path = serviceBackend(s.Namespace, s.Name, s.Port), ptr.Deref(s.Path, "")
	} else {
		t.Backend, t.Path = urlBackend(ptr.Deref(client.URL, ""))
	}
	r.s.Targets = append(r.s.Targets, t)
}

// An apiService is an APIService of apiregistration.k8s.io. Its Go type is in k8s.io/kube-aggregator, which nothing else
// here needs.
type apiService struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			Port      *int32 `json:"port"`
		} `json:"service"`
		CABundle              []byte `json:"caBundle"`
		InsecureSkipTLSVerify bool   `json:"insecureSkipTLSVerify"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// readAPIServices reads the APIServices of aggregated API servers.
func (r *reader) readAPIServices(ctx context.Context) {
	found, _ := list[apiService](ctx, r, resource("apiregistration.k8s.io", "v1", "apiservices"), "", metav1.ListOptions{})
	for _, a := range found {
		s := a.Spec.Service
		if s == nil {
			continue // the API server serves it itself
		}
		t := &doctor.Target{Kind: doctor.Aggregated, Name: a.Name, Backend: serviceBackend(s.Namespace, s.Name, s.Port),
			Bundle: a.Spec.CABundle, Unverified: a.Spec.InsecureSkipTLSVerify, Fails: true}
		if c := meta.FindStatusCondition(a.Status.Conditions, "Available"); c != nil && c.Status == metav1.ConditionFalse {
			t.Unavailable = c.Reason + ": " + c.Message
		}
		r.s.Targets = append(r.s.Targets, t)
	}
}
