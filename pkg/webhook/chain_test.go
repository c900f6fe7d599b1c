// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"io"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	mutatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func init() {
	utilruntime.ErrorHandlers = nil // the default handlers print and sleep
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

// A chain holds the two webhook plugins of the API server, in the order in which the API server calls them.
type chain struct {
	admission.Interface
	objects admission.ObjectInterfaces
}

// newChain returns a chain that calls the hooks at the endpoint, as their generated
// configurations say.
func newChain(tb testing.TB, e *endpoint, hooks ...*webhook.Hook) *chain {
	tb.Helper()
	o := webhook.ConfigurationOptions{Name: "policy", URL: e.url, CABundle: e.ca.Bundle}
	mutating, validating, err := webhook.Configurations(o, hooks...)
	if err != nil {
		tb.Fatal(err)
	}
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	registered := factory.Admissionregistration().V1()
	if mutating != nil {
		err = registered.MutatingWebhookConfigurations().Informer().GetStore().Add(mutating)
	}
	if validating != nil && err == nil {
		err = registered.ValidatingWebhookConfigurations().Informer().GetStore().Add(validating)
	}
	if err != nil {
		tb.Fatal(err)
	}
	plugins := admission.NewPlugins()
	mutatingplugin.Register(plugins)
	validatingplugin.Register(plugins)
	anonymous := func(webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver {
		return &webhookutil.AuthenticationInfoResolverDelegator{ClientConfigForFunc: func(string) (*rest.Config, error) {
			return &rest.Config{Dial: e.dial}, nil
		}}
	}
	handler, err := plugins.NewFromPlugins([]string{mutatingplugin.PluginName, validatingplugin.PluginName}, noConfig{},
		admission.PluginInitializers{
			initializer.New(client, nil, factory, nil, utilfeature.DefaultFeatureGate, nil, tb.Context().Done(), nil),
			webhookinit.NewPluginInitializer(anonymous, webhookutil.NewDefaultServiceResolver()),
		}, admission.DecoratorFunc(alwaysReady))
	if err != nil {
		tb.Fatal(err)
	}
	return &chain{handler, admission.NewObjectInterfacesFromScheme(scheme.Scheme)}
}

type noConfig struct{}

func (noConfig) ConfigFor(string) (io.Reader, error) { return nil, nil }

// alwaysReady makes a plugin ready, although the informers of the test never run and so never sync.
func alwaysReady(plugin admission.Interface, _ string) admission.Interface {
	plugin.(interface{ SetReadyFunc(admission.ReadyFunc) }).SetReadyFunc(func() bool { return true })
	return plugin
}

// create sends a Pod, which webhooks may change, through both plugins. It returns the status that the user sees, or
// nil.
func (c *chain) create(ctx context.Context, pod *corev1.Pod) *metav1.Status {
	gvk, gvr := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	options := &metav1.CreateOptions{TypeMeta: metav1.TypeMeta{Kind: "CreateOptions", APIVersion: "meta.k8s.io/v1"}}
	attributes := admission.NewAttributesRecord(pod, nil, gvk, pod.Namespace, pod.Name, gvr, "",
		admission.Operation(admissionv1.Create), options, false, &user.DefaultInfo{Name: "ada"})
	err := c.Interface.(admission.MutationInterface).Admit(ctx, attributes, c.objects)
	if err == nil {
		err = c.Interface.(admission.ValidationInterface).Validate(ctx, attributes, c.objects)
	}
	if err == nil {
		return nil
	}
	return responsewriters.ErrorToAPIStatus(err)
}
