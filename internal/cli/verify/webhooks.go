// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// A hook is a webhook to test.
type hook struct {
	admissionregistrationv1.MutatingWebhook
	configuration string // name of the object
	where         string // file and line of the object
	urls          []string
	ca            []byte // PEM, of whom its server is trusted by, instead of what the command line says
}

// hooks are the webhooks to test, until the function is called.
func (r *runner) hooks(ctx context.Context, g *given) ([]hook, func(), error) {
	var all []hook
	var err error
	switch {
	case r.Hook != "":
		return r.goHooks(ctx)
	case len(r.Chain) > 0:
		all, err = r.chain(g)
	default:
		all, err = r.single(g)
	}
	return all, func() {}, err
}

func registered(g *given) (all []hook) {
	for _, c := range g.registrations.Mutating {
		for _, w := range c.Value.Webhooks {
			all = append(all, hook{MutatingWebhook: w, configuration: c.Value.Name, where: c.Where()})
		}
	}
	return all
}

// single is the one webhook that is meant.
func (r *runner) single(g *given) ([]hook, error) {
	all := registered(g)
	if len(all) == 0 {
		h, err := r.guessed(g)
		return []hook{h}, err
	}
	h, err := r.choose(all)
	if err != nil {
		return nil, err
	}
	if h.urls = r.URLs; len(h.urls) == 0 {
		h.urls, err = served(h, "")
	}
	if err != nil {
		return nil, err
	}
	for _, u := range h.urls {
		if err := r.checkURL(u); err != nil {
			return nil, err
		}
	}
	return []hook{h}, nil
}

// choose finds the webhook that is meant among several.
func (r *runner) choose(all []hook) (hook, error) {
	names := make([]string, len(all))
	for i, h := range all {
		names[i] = h.Name
	}
	list := strings.Join(names, ", ")
	fits := func(hook) bool { return true }
	switch {
	case r.Webhook != "":
		fits = func(h hook) bool { return h.Name == r.Webhook }
	case len(all) > 1 && len(r.URLs) > 0:
		fits = func(h hook) bool { return pathOf(h) == pathOfURL(r.URLs[0]) }
	}
	var found []hook
	for _, h := range all {
		if fits(h) {
			found = append(found, h)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case r.Webhook != "" && len(found) == 0:
		return hook{}, problem.New("there is no mutating webhook %q: there are %s", r.Webhook, list)
	case r.Webhook != "":
		return hook{}, problem.New("%s is there %d times, the first time in %s", r.Webhook, len(found), found[0].where).
			Hint("give the one that is meant in a file of its own")
	}
	err := problem.New("there are %d mutating webhooks: %s", len(all), list)
	if r.Hook != "" { // which --chain excludes
		return hook{}, err.Hint("--webhook %s, for one of them", names[0])
	}
	return hook{}, err.Hint("--webhook %s, for one of them; or --chain FILE, for all of them together", names[0])
}

// pathOf is the path at which a webhook is served.
func pathOf(h hook) string {
	switch c := h.ClientConfig; {
	case c.URL != nil:
		return pathOfURL(*c.URL)
	case c.Service != nil && c.Service.Path != nil:
		return path.Join("/", *c.Service.Path)
	}
	return "/"
}

func pathOfURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return path.Join("/", u.Path)
}

// served is where the API server would call. Hints have a prefix before URLs.
func served(h hook, prefix string) ([]string, error) {
	switch c := h.ClientConfig; {
	case c.URL != nil:
		return []string{*c.URL}, nil
	case c.Service != nil:
		port := int32(443)
		if c.Service.Port != nil {
			port = *c.Service.Port
		}
		name := c.Service.Name + "." + c.Service.Namespace + ".svc"
		err := problem.New("%s: %s is behind the Service %s, which only its cluster can reach", h.where, h.Name, name)
		return nil, problem.Hint(err.Hint("kubectl -n %s port-forward service/%s 9443:%d", c.Service.Namespace, c.Service.Name, port),
			"--url %shttps://127.0.0.1:9443%s --server-name %s", prefix, strings.TrimSuffix(pathOf(h), "/"), name)
	}
	return nil, problem.New("%s: %s has no clientConfig that says where it is served", h.where, h.Name).Hint("--url %sURL", prefix)
}

// checkURL tells what the API server would not take.
func (r *runner) checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return problem.New("%q is no URL of a webhook", text).Hint("--url https://127.0.0.1:9443/mutate")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return problem.New("%s: the URL of a webhook has no query, no fragment and no user", u.Redacted())
	case u.Scheme == "http":
		r.note("%s is called without TLS, which no API server does", text)
	}
	return nil
}

// guessed is a webhook without a registration.
func (r *runner) guessed(g *given) (hook, error) {
	switch {
	case len(g.registrations.Validating) > 0:
		return hook{}, problem.New("%s: there are validating webhooks only, and what changes nothing breaks no law of reinvocation",
			g.registrations.Validating[0].Where())
	case len(r.Configurations) > 0:
		return hook{}, problem.New("%s: there is no MutatingWebhookConfiguration in it", objects.Names(r.Configurations...))
	case len(r.URLs) == 0:
		return hook{}, problem.New("nothing says which webhook is meant").
			Hint("--url URL --webhook-configuration FILE -f FILE").Hint("admitkit verify --help")
	}
	rules := rulesFor(g)
	if len(rules) == 0 {
		return hook{}, problem.New("nothing says what %s is called for", r.URLs[0]).
			Hint("--webhook-configuration FILE, or -f FILE with objects that it is for")
	}
	for _, u := range r.URLs {
		if err := r.checkURL(u); err != nil {
			return hook{}, err
		}
	}
	var resources []string
	for _, rule := range rules {
		resources = append(resources, rule.Resources[0])
	}
	r.note("without a configuration, it is taken to be called for CREATE of %s, with reinvocationPolicy IfNeeded and no side effects; give --webhook-configuration to try updates, too", strings.Join(resources, ", "))
	none, again := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.IfNeededReinvocationPolicy
	return hook{urls: r.URLs, MutatingWebhook: admissionregistrationv1.MutatingWebhook{
		Name: cmp.Or(r.Webhook, strings.TrimPrefix(strings.TrimPrefix(r.URLs[0], "https://"), "http://")), Rules: rules,
		SideEffects: &none, ReinvocationPolicy: &again, AdmissionReviewVersions: []string{"v1"},
	}}, nil
}

// rulesFor are rules for the kinds of the samples, a rule for each.
func rulesFor(g *given) (rules []admissionregistrationv1.RuleWithOperations) {
	add := func(group, version, plural string) {
		rule := admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{plural}},
		}
		if !slices.ContainsFunc(rules, func(known admissionregistrationv1.RuleWithOperations) bool {
			return known.APIGroups[0] == group && known.APIVersions[0] == version && known.Resources[0] == plural
		}) {
			rules = append(rules, rule)
		}
	}
	for _, o := range g.Others {
		plural, _ := meta.UnsafeGuessKindToResource(o.GVK)
		for _, d := range g.CRDs {
			if d.Value.Spec.Group == o.GVK.Group && d.Value.Spec.Names.Kind == o.GVK.Kind {
				plural.Resource = d.Value.Spec.Names.Plural
			}
		}
		add(o.GVK.Group, o.GVK.Version, plural.Resource)
	}
	for _, d := range g.CRDs {
		for _, v := range d.Value.Spec.Versions {
			if v.Served {
				add(d.Value.Spec.Group, v.Name, d.Value.Spec.Names.Plural)
			}
		}
	}
	return rules
}

// chain are all webhooks, in the order in which the API server calls them.
func (r *runner) chain(g *given) ([]hook, error) {
	all := registered(g)
	if len(all) == 0 {
		return nil, problem.New("%s: there is no mutating webhook in it", objects.Names(r.Chain...))
	}
	slices.SortStableFunc(all, func(a, b hook) int { return strings.Compare(a.configuration, b.configuration) })
	var order []string
	for i := range all {
		h := &all[i]
		for _, named := range r.URLs {
			name, u, ok := strings.Cut(named, "=")
			if !ok || strings.Contains(name, "/") {
				return nil, problem.New("--url %s: with --chain, it has to say which webhook is there", named).Hint("--url %s=%s", h.Name, named)
			}
			if name == h.Name {
				h.urls = append(h.urls, u)
			}
		}
		var err error
		if len(h.urls) == 0 {
			if h.urls, err = served(*h, h.Name+"="); err != nil {
				return nil, err
			}
		}
		for _, u := range h.urls {
			if err := r.checkURL(u); err != nil {
				return nil, err
			}
		}
		order = append(order, h.Name)
	}
	if err := r.knownNames(all); err != nil {
		return nil, err
	}
	r.note("called in this order: %s", strings.Join(order, ", "))
	return all, nil
}

// knownNames looks for a name in --url that no webhook has.
func (r *runner) knownNames(all []hook) error {
	for _, named := range r.URLs {
		name, _, _ := strings.Cut(named, "=")
		if !slices.ContainsFunc(all, func(h hook) bool { return h.Name == name }) {
			return problem.New("--url %s: there is no webhook %s", named, name)
		}
	}
	return nil
}

// subject is what the harness tests.
func (r *runner) subject(hooks []hook) (idempotence.Subject, error) {
	var all []idempotence.Subject
	for _, h := range hooks {
		client, err := r.client(h)
		if err != nil {
			return idempotence.Subject{}, err
		}
		all = append(all, idempotence.URL(h.MutatingWebhook, client, h.urls...))
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return idempotence.Together(all...), nil
}
