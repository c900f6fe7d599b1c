// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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
)

// Chain is the engine that New returns. It can run any number of requests.
type Chain struct {
	options              Options // with an authorizer
	mutating, validating []*hook
	admission            chained
	objects              *objects
	managed              fieldManagers
	predicates           predicates
	guessedAuthorizer    bool
	known                *knownNamespaces
	clients              *clients
	// realHosts turns the keys of endpoints in messages back into hosts.
	realHosts *strings.Replacer
	stop      chan struct{}
}

var _ Engine = (*Chain)(nil)

type chained interface {
	admission.MutationInterface
	admission.ValidationInterface
}

// New returns an engine that runs the API server's own admission code in this process. The error lists everything
// that the API server would reject in the configurations. See [ConfigurationErrors].
func New(w Webhooks, o Options) (*Chain, error) {
	c := &Chain{options: o, stop: make(chan struct{})}
	registered, err := w.completed()
	if err != nil {
		return nil, err
	}
	if c.objects, err = newObjects(&o); err != nil {
		return nil, err
	}
	if c.options.Authorizer == nil {
		c.options.Authorizer, c.guessedAuthorizer = mastersOnly, true
	}
	c.managed.objects = c.objects
	c.mutating, c.validating = registered.register(w.Handlers)
	c.clients = newClients(o.ResolveService, c.mutating, c.validating)
	c.realHosts = realHosts(c.mutating, c.validating)
	if err := c.convertible(); err != nil {
		return nil, err
	}
	return c, c.build(registered)
}

// build makes the API server's chain, without goroutines: what informers would fetch is there
// from the beginning.
func (c *Chain) build(registered configurations) error {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://admitkit.invalid", QPS: -1, Transport: noNamespaces{}})
	if err != nil {
		return err
	}
	c.known = &knownNamespaces{given: namespacesOf(c.options.Namespaces)}
	factory := informers.NewSharedInformerFactory(client, 0)
	c.known.provide(factory)
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
	c.predicates = predicates{
		namespaces: &namespace.Matcher{NamespaceLister: factory.Core().V1().Namespaces().Lister(), Client: client},
		objects:    &object.Matcher{},
		authorizer: c.options.Authorizer,
	}
	handler, err := c.newPlugins(client, factory, c.options.Authorizer)
	if err != nil {
		return err
	}
	c.admission = fieldmanageradmission.NewManagedFieldsValidatingAdmissionController(handler).(chained)
	return nil
}

func (c *Chain) newPlugins(client kubernetes.Interface, factory informers.SharedInformerFactory, a authorizer.Authorizer) (admission.Interface, error) {
	plugins := admission.NewPlugins()
	var names []string
	for _, p := range c.options.Plugins {
		plugins.Register(p.Name, func(io.Reader) (admission.Interface, error) { return p.Admission, nil })
		names = append(names, p.Name)
	}
	mutatingplugin.Register(plugins)
	validatingplugin.Register(plugins)
	names = append(names, mutatingplugin.PluginName, validatingplugin.PluginName)
	return plugins.NewFromPlugins(names, noConfig{}, admission.PluginInitializers{
		initializer.New(client, nil, factory, a, utilfeature.DefaultFeatureGate, nil, c.stop, nil),
		webhookinit.NewPluginInitializer(c.clients.wrap, webhookutil.NewDefaultServiceResolver()),
	}, admission.DecoratorFunc(alwaysReady))
}

type noConfig struct{}

func (noConfig) ConfigFor(string) (io.Reader, error) { return nil, nil }

// alwaysReady stands in for informers that have synced: these never run.
func alwaysReady(p admission.Interface, name string) admission.Interface {
	if name == mutatingplugin.PluginName || name == validatingplugin.PluginName {
		p.(interface{ SetReadyFunc(admission.ReadyFunc) }).SetReadyFunc(func() bool { return true })
	}
	return p
}

// noNamespaces is the API server that namespaces are looked for at which are not known.
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

func newClients(resolve func(context.Context, string, string, int32) (string, error), sorts ...[]*hook) *clients {
	c := &clients{hooks: map[string]*hook{}, opened: map[*hook]http.RoundTripper{}, resolve: resolve}
	for _, hooks := range sorts {
		for _, h := range hooks {
			c.hooks[h.key] = h
		}
	}
	return c
}

func realHosts(sorts ...[]*hook) *strings.Replacer {
	hooks := slices.Concat(sorts...)
	// One key may begin like another.
	slices.SortFunc(hooks, func(a, b *hook) int { return cmp.Compare(len(b.key), len(a.key)) })
	var pairs []string
	for _, h := range hooks {
		pairs = append(pairs, h.key, h.host)
	}
	return strings.NewReplacer(pairs...)
}

// Close closes idle connections to webhooks.
func (c *Chain) Close() error {
	c.clients.close()
	return nil
}

// Admit runs one request through the webhooks as the API server does.
func (c *Chain) Admit(ctx context.Context, req Request) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	asked, refusal, err := c.objects.decode(req)
	if err != nil {
		return nil, fmt.Errorf("cannot make a request of this: %w", err)
	}
	r := &run{asked: asked, chain: c, open: map[*hook]*call{}, seen: map[string]bool{}}
	defer r.holdNamespace()()
	warnings, err := withWarnings(ctx, func(ctx context.Context) error {
		if refusal != nil {
			return refusal
		}
		return r.admit(ctx)
	})
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	result, err := r.result(err)
	if err != nil {
		return nil, err
	}
	result.Warnings = warnings
	return result, nil
}

// mastersOnly allows everything to members of system:masters. It is the authorizer of an engine without one.
var mastersOnly = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(a.GetUser().GetGroups(), masters) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
})

const masters = "system:masters"
