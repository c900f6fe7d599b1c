// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook/internal/registration"
)

// ConfigurationOptions configure [Configurations]: the address of the hooks and the metadata of the objects. The
// clientConfig of a registration takes precedence over these options. [Hook.WithPath] takes precedence over the path in
// that clientConfig.
type ConfigurationOptions struct {
	// Name is the metadata.name of the configuration objects. It is required. The API server calls
	// the mutating webhooks of several configurations in the order of these names.
	Name string
	// Service is the address of the hooks in a cluster. Namespace and Name are required. Port is
	// 443 if unset. Path is not used, since each hook has its own.
	Service *admissionregistrationv1.ServiceReference
	// URL is the address of the hooks outside a cluster: https://host:port. If URL has a path, the
	// paths of the hooks are appended to it. Use such a URL only with a proxy that removes its path
	// again: a [Server] serves hooks at their own paths. Set either Service or URL, unless every
	// registration has its own clientConfig.
	URL string
	// CABundle holds the PEM certificates that verify the serving certificate, and nothing else.
	// If CABundle is empty or white space, the API server uses the CAs of its system.
	CABundle []byte
	// Namespace is the namespace of the webhook, Service.Namespace if unset. The default
	// namespaceSelector excludes it, so that the webhook cannot block its own Pods.
	Namespace string
	// Labels and Annotations are set on the configuration objects: for example, the annotation
	// cert-manager.io/inject-ca-from.
	Labels, Annotations map[string]string
}

// Configurations returns the objects that register the hooks with an API server, in the order of the
// arguments. An object is nil if there is no hook of its kind. Every field is explicit: see [Mutating]
// for the defaults. If a registration has no namespaceSelector, not even an empty one, its webhook is
// not called for kube-system or for the namespace of the webhook.
//
// The error joins every error of the hooks and the options. The error of a field is a
// *field.Error. Its Field begins with "ConfigurationOptions", or with "mutating[<name>]" or
// "validating[<name>]" for a registration. For a webhook without an address, the error has the
// type field.ErrorTypeRequired and the field clientConfig. The objects share no memory with the
// hooks.
func Configurations(o ConfigurationOptions, hooks ...*Hook) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	if err := errors.Join(checkHooks(hooks), o.validate()); err != nil {
		return nil, nil, err
	}
	var mutating []admissionregistrationv1.MutatingWebhook
	var validating []admissionregistrationv1.ValidatingWebhook
	var errs []error
	for _, h := range hooks {
		c, err := o.clientConfig(h)
		errs = append(errs, err)
		if h.reg.Mutating {
			mutating = append(mutating, h.reg.AsMutating(c, o.selector(h)))
		} else {
			validating = append(validating, h.reg.AsValidating(c, o.selector(h)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return o.mutating(mutating), o.validating(validating), nil
}

// MutatingWebhook returns a copy of the registration with the defaults of [Mutating], or nil for a validating hook. The
// namespaceSelector excludes only kube-system by default, and the clientConfig has only what the registration says:
// [Configurations] adds the namespace and the address of the webhook. The method makes a hook an idempotence.Hook.
func (h *Hook) MutatingWebhook() *admissionregistrationv1.MutatingWebhook {
	if !h.reg.Mutating {
		return nil
	}
	w := h.reg.AsMutating(h.reg.ClientConfig, ConfigurationOptions{}.selector(h))
	return &w
}

func (o ConfigurationOptions) validate() error {
	options := field.NewPath("ConfigurationOptions")
	var list field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(o.Name) {
		list = append(list, field.Invalid(options.Child("Name"), o.Name, problem))
	}
	if o.URL != "" && o.Service != nil {
		list = append(list, field.Forbidden(options.Child("URL"), "set either URL or Service, not both"))
	}
	if o.URL != "" {
		list = append(list, registration.ValidateURL(options.Child("URL"), o.URL)...)
	}
	if o.Service != nil {
		list = append(list, registration.ValidateService(options.Child("Service"), o.Service)...)
	}
	list = append(list, registration.ValidateBundle(options.Child("CABundle"), o.CABundle)...)
	list = append(list, registration.ValidateNamespace(options.Child("Namespace"), o.Namespace)...)
	list = append(list, metav1validation.ValidateLabels(o.Labels, options.Child("Labels"))...)
	list = append(list, apivalidation.ValidateAnnotations(o.Annotations, options.Child("Annotations"))...)
	return registration.JoinFields(list)
}

// clientConfig returns the clientConfig of a registration, completed with the address and the CA bundle of the options.
func (o ConfigurationOptions) clientConfig(h *Hook) (admissionregistrationv1.WebhookClientConfig, error) {
	c := *h.reg.ClientConfig.DeepCopy()
	at := h.reg.FieldPath().Child("clientConfig")
	if errs := registration.ValidateBundle(at.Child("caBundle"), c.CABundle); len(errs) > 0 {
		return c, registration.JoinFields(errs)
	}
	if registration.IsBlank(c.CABundle) {
		c.CABundle = slices.Clone(o.CABundle)
	}
	if registration.IsBlank(c.CABundle) {
		c.CABundle = nil
	}
	switch {
	case c.URL != nil:
		if u, err := url.Parse(*c.URL); err == nil && (u.Path == "" || h.reg.ServedPath != nil) {
			u.Path, u.RawPath = "", ""
			c.URL = ptr.To(u.JoinPath(h.Path()).String())
		}
	case o.URL != "" && (c.Service == nil || c.Service.Name == ""):
		base, err := url.Parse(o.URL)
		if err != nil {
			return c, err
		}
		c.URL, c.Service = ptr.To(base.JoinPath(h.Path()).String()), nil
	default:
		c.Service = o.service(c.Service, h)
		if c.Service.Name == "" || c.Service.Namespace == "" {
			return c, field.Required(at, "the webhook has no address: set URL, or Namespace and Name of Service, in ConfigurationOptions")
		}
		if errs := registration.ValidateServicePath(at.Child("service", "path"), h.Path()); len(errs) > 0 {
			return c, registration.JoinFields(errs)
		}
	}
	return c, nil
}

func (o ConfigurationOptions) service(own *admissionregistrationv1.ServiceReference, h *Hook) *admissionregistrationv1.ServiceReference {
	s := ptr.Deref(o.Service, admissionregistrationv1.ServiceReference{})
	if own != nil {
		s.Name, s.Namespace = cmp.Or(own.Name, s.Name), cmp.Or(own.Namespace, s.Namespace)
		s.Port = cmp.Or(own.Port, s.Port)
	}
	s.Port = ptr.To(ptr.Deref(s.Port, 443))
	s.Path = ptr.To(h.Path())
	return &s
}

// selector returns the namespaceSelector of the registration or the default one. With the default, a
// broken webhook blocks neither the control plane nor its own repair.
func (o ConfigurationOptions) selector(h *Hook) *metav1.LabelSelector {
	if h.reg.NamespaceSelector != nil {
		return h.reg.NamespaceSelector.DeepCopy()
	}
	without := sets.New(metav1.NamespaceSystem)
	for _, s := range []*admissionregistrationv1.ServiceReference{o.Service, h.reg.ClientConfig.Service} {
		if s != nil && s.Namespace != "" {
			without.Insert(s.Namespace)
		}
	}
	if o.Namespace != "" {
		without.Insert(o.Namespace)
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: sets.List(without),
	}}}
}

func (o ConfigurationOptions) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.Name, Labels: maps.Clone(o.Labels), Annotations: maps.Clone(o.Annotations)}
}

func (o ConfigurationOptions) mutating(webhooks []admissionregistrationv1.MutatingWebhook) *admissionregistrationv1.MutatingWebhookConfiguration {
	if len(webhooks) == 0 {
		return nil
	}
	c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: o.meta(), Webhooks: webhooks}
	c.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
	return c
}

func (o ConfigurationOptions) validating(webhooks []admissionregistrationv1.ValidatingWebhook) *admissionregistrationv1.ValidatingWebhookConfiguration {
	if len(webhooks) == 0 {
		return nil
	}
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: o.meta(), Webhooks: webhooks}
	c.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	return c
}
