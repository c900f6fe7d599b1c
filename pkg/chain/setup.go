// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	mutatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object"
	validatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	fieldmanageradmission "k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/policy"
)

// An engine has the data that all requests to a [Chain] share.
type engine struct {
	options              Options // with an Authorizer that is not nil
	mutating, validating []*inprocess.Hook
	admission            chained
	objects              *inprocess.Objects
	managed              *inprocess.FieldManagers
	predicates           predicates
	guessedAuthorizer    bool // Options.Authorizer is nil
	known                *inprocess.KnownNamespaces
	clients              *inprocess.Clients
	mutatingPolicies     *policy.Mutating   // nil without bindings
	validatingPolicies   *policy.Validating // nil without bindings
	// realHosts replaces the placeholder hosts in messages with the real hosts of the webhooks (see
	// inprocess.RealHosts).
	realHosts *strings.Replacer
	stop      chan struct{}
}

type chained interface {
	admission.MutationInterface
	admission.ValidationInterface
}

func newEngine(w Webhooks, o Options) (*engine, error) {
	e := &engine{options: o, stop: make(chan struct{})}
	registered, err := w.completed()
	if err != nil {
		return nil, err
	}
	if e.objects, err = inprocess.NewObjects(o.Types, o.CRDs, o.Default); err != nil {
		return nil, err
	}
	if e.options.Authorizer == nil {
		e.options.Authorizer, e.guessedAuthorizer = inprocess.MastersOnly, true
	}
	e.managed = inprocess.NewFieldManagers(e.objects)
	e.mutating, e.validating = inprocess.NewHooks(registered.mutating, registered.validating, w.Handlers)
	e.clients = inprocess.NewClients(o.ResolveService, e.mutating, e.validating)
	e.realHosts = inprocess.RealHosts(e.mutating, e.validating)
	if err := e.objects.AddConverters(e.clients, o.Conversions); err != nil {
		return nil, err
	}
	return e, e.build(registered)
}

// decode decodes a request. refusal is the error with which the API server rejects the request before admission.
func (e *engine) decode(req Request) (s *inprocess.Subject, refusal, err error) {
	decoded, refusal, err := e.objects.Decode(inprocess.Request(req))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot decode the request: %w", err)
	}
	return &inprocess.Subject{DecodedRequest: decoded, Objects: e.objects}, refusal, nil
}

func (e *engine) storage() inprocess.Storage {
	return inprocess.Storage{Managed: e.managed, SetsDefaults: e.options.Default != nil, Validate: e.options.Validate}
}

// holdNamespace sets the labels of a request's Namespace to those of the old object, for namespaceSelectors. On CREATE and
// UPDATE the selectors read the labels of the new object.
func (e *engine) holdNamespace(r *inprocess.DecodedRequest) (release func()) {
	old, ok := r.Old.(*corev1.Namespace)
	if !ok || r.Operation == admission.Update && r.SubResource == "" {
		return func() {}
	}
	return e.known.Hold(inprocess.NewNamespace(r.Namespace, old.Labels))
}

// build creates the API server's admission chain. It fills the stores of the informers itself, and never starts the
// informers.
func (e *engine) build(registered configurations) error {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://admitkit.invalid", QPS: -1, Transport: noNamespaces{}})
	if err != nil {
		return err
	}
	e.known = inprocess.NewKnownNamespaces(e.options.Namespaces)
	factory := informers.NewSharedInformerFactory(client, 0)
	e.known.Provide(factory)
	configured := factory.Admissionregistration().V1()
	var errs []error
	for _, m := range registered.mutating {
		errs = append(errs, configured.MutatingWebhookConfigurations().Informer().GetStore().Add(m))
	}
	for _, v := range registered.validating {
		errs = append(errs, configured.ValidatingWebhookConfigurations().Informer().GetStore().Add(v))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	e.predicates = predicates{
		namespaces: &namespace.Matcher{NamespaceLister: factory.Core().V1().Namespaces().Lister(), Client: client},
		objects:    &object.Matcher{},
		authorizer: e.options.Authorizer, guessedAuthorizer: e.guessedAuthorizer,
	}
	if err := e.addPolicies(client, factory); err != nil {
		return err
	}
	handler, err := e.newPlugins(client, factory, e.options.Authorizer)
	if err != nil {
		return err
	}
	e.admission = fieldmanageradmission.NewManagedFieldsValidatingAdmissionController(handler).(chained)
	return nil
}

func (e *engine) newPlugins(client kubernetes.Interface, factory informers.SharedInformerFactory, a authorizer.Authorizer) (admission.Interface, error) {
	plugins := admission.NewPlugins()
	var names []string
	for _, p := range e.options.Plugins {
		plugins.Register(p.Name, func(io.Reader) (admission.Interface, error) { return p.Admission, nil })
		names = append(names, p.Name)
	}
	if e.mutatingPolicies != nil {
		plugins.Register(policy.MutatingPlugin, func(io.Reader) (admission.Interface, error) { return e.mutatingPolicies, nil })
		names = append(names, policy.MutatingPlugin)
	}
	mutatingplugin.Register(plugins)
	names = append(names, mutatingplugin.PluginName)
	if e.validatingPolicies != nil {
		plugins.Register(policy.ValidatingPlugin, func(io.Reader) (admission.Interface, error) { return e.validatingPolicies, nil })
		names = append(names, policy.ValidatingPlugin)
	}
	validatingplugin.Register(plugins)
	names = append(names, validatingplugin.PluginName)
	return plugins.NewFromPlugins(names, noConfig{}, admission.PluginInitializers{
		initializer.New(client, nil, factory, a, utilfeature.DefaultFeatureGate, nil, e.stop, nil),
		webhookinit.NewPluginInitializer(e.clients.Wrap, webhookutil.NewDefaultServiceResolver()),
	}, admission.DecoratorFunc(alwaysReady))
}

type noConfig struct{}

func (noConfig) ConfigFor(string) (io.Reader, error) { return nil, nil }

// alwaysReady stops the webhook plugins from waiting for their informers, which never run. It returns p.
func alwaysReady(p admission.Interface, name string) admission.Interface {
	if name == mutatingplugin.PluginName || name == validatingplugin.PluginName {
		p.(interface{ SetReadyFunc(admission.ReadyFunc) }).SetReadyFunc(func() bool { return true })
	}
	return p
}

// noNamespaces is an HTTP transport that answers every request with 404, as an API server without namespaces does. The
// plugins ask the API server for namespaces that the informer does not have.
type noNamespaces struct{}

func (noNamespaces) RoundTrip(req *http.Request) (*http.Response, error) {
	name := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	status := apierrors.NewNotFound(corev1.Resource("namespaces"), name).ErrStatus
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(body))), ContentLength: int64(len(body)), Request: req}, nil
}
