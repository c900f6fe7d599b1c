// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/traffic"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// A target is a webhook to test.
type target struct {
	admissionregistrationv1.MutatingWebhook
	configuration string // name of the configuration object
	where         string // file and line of the configuration
	urls          []string
	ca            []byte // PEM certificates that replace the CA of the command line
}

// hooks returns the webhooks to test, and a function that stops those that this process started.
func (r *runner) hooks(ctx context.Context, g *given) ([]target, func(), error) {
	var all []target
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

func registered(g *given) (all []target) {
	for _, c := range g.registrations.Mutating {
		for _, w := range c.Value.Webhooks {
			all = append(all, target{MutatingWebhook: w, configuration: c.Value.Name, where: c.Where()})
		}
	}
	return all
}

// single returns the one webhook that the flags select.
func (r *runner) single(g *given) ([]target, error) {
	all := registered(g)
	if len(all) == 0 {
		h, err := r.guessed(g)
		return []target{h}, err
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
	return []target{h}, nil
}

// choose returns the webhook that the flags select from several.
func (r *runner) choose(all []target) (target, error) {
	names := make([]string, len(all))
	for i, h := range all {
		names[i] = h.Name
	}
	list := strings.Join(names, ", ")
	fits := func(target) bool { return true }
	switch {
	case r.Webhook != "":
		fits = func(h target) bool { return h.Name == r.Webhook }
	case len(all) > 1 && len(r.URLs) > 0:
		fits = func(h target) bool { return pathOf(h) == traffic.PathOfURL(r.URLs[0]) }
	}
	var found []target
	for _, h := range all {
		if fits(h) {
			found = append(found, h)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case r.Webhook != "" && len(found) == 0:
		return target{}, problem.New("there is no mutating webhook %q: choose one of %s", r.Webhook, list)
	case r.Webhook != "":
		return target{}, problem.New("there are %[2]d webhooks named %[1]s, the first in %[3]s", r.Webhook, len(found), found[0].where).
			Hint("put the webhook to test into its own file")
	}
	err := problem.New("there are %d mutating webhooks: %s", len(all), list)
	if r.Hook != "" { // a package cannot be combined with --chain
		return target{}, err.Hint("to test one of them: --webhook %s", names[0])
	}
	return target{}, err.Hint("to test one of them: --webhook %s; to test them together: --chain FILE", names[0])
}

// pathOf returns the URL path of a webhook.
func pathOf(h target) string { return traffic.Path(h.ClientConfig) }

// served returns the URLs from the clientConfig of a webhook. The hints of its errors put prefix before each URL.
func served(h target, prefix string) ([]string, error) {
	switch c := h.ClientConfig; {
	case c.URL != nil:
		return []string{*c.URL}, nil
	case c.Service != nil:
		port := int32(443)
		if c.Service.Port != nil {
			port = *c.Service.Port
		}
		name := c.Service.Name + "." + c.Service.Namespace + ".svc"
		err := problem.New("%s: %s is behind the Service %s, which only Pods of its cluster can reach", h.where, h.Name, name)
		return nil, problem.Hint(err.Hint("kubectl -n %s port-forward service/%s 9443:%d", c.Service.Namespace, c.Service.Name, port),
			"--url %shttps://127.0.0.1:9443%s --server-name %s", prefix, strings.TrimSuffix(pathOf(h), "/"), name)
	}
	return nil, problem.New("%s: %s has no address in its clientConfig", h.where, h.Name).Hint("--url %sURL", prefix)
}

// checkURL returns an error for a URL that the API server would reject.
func (r *runner) checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return problem.New("%q is not the URL of a webhook", text).Hint("--url https://127.0.0.1:9443/mutate")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return problem.New("%s: the URL of a webhook must not have a query, a fragment or a user", u.Redacted())
	case u.Scheme == "http":
		r.note("%s is called without TLS, which no API server does", text)
	}
	return nil
}

// guessed returns a webhook without a configuration. Its rules match the samples.
func (r *runner) guessed(g *given) (target, error) {
	switch {
	case len(g.registrations.Validating) > 0:
		return target{}, problem.New("%s has only validating webhooks: verify tests mutating ones",
			g.registrations.Validating[0].Where())
	case len(r.Configurations) > 0:
		return target{}, problem.New("%s has no MutatingWebhookConfiguration", objects.Names(r.Configurations...))
	case len(r.URLs) == 0:
		return target{}, problem.New("no webhook is given").
			Hint("--url URL --webhook-configuration FILE -f FILE").Hint("admitkit verify --help")
	}
	rules := rulesFor(g)
	if len(rules) == 0 {
		return target{}, problem.New("the objects that %s handles are unknown", r.URLs[0]).
			Hint("--webhook-configuration FILE, or -f FILE with objects that it handles")
	}
	for _, u := range r.URLs {
		if err := r.checkURL(u); err != nil {
			return target{}, err
		}
	}
	var resources []string
	for _, rule := range rules {
		resources = append(resources, rule.Resources[0])
	}
	r.note("without a configuration, the webhook is tested for CREATE of %s, with reinvocationPolicy IfNeeded and no side effects; to test updates, add --webhook-configuration", strings.Join(resources, ", "))
	none, again := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.IfNeededReinvocationPolicy
	return target{urls: r.URLs, MutatingWebhook: admissionregistrationv1.MutatingWebhook{
		Name: cmp.Or(r.Webhook, strings.TrimPrefix(strings.TrimPrefix(r.URLs[0], "https://"), "http://")), Rules: rules,
		SideEffects: &none, ReinvocationPolicy: &again, AdmissionReviewVersions: []string{"v1"},
	}}, nil
}

// rulesFor returns a rule for each kind of the samples and of the custom resource definitions.
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

// chain returns all webhooks in the order in which the API server calls them.
func (r *runner) chain(g *given) ([]target, error) {
	all := registered(g)
	if len(all) == 0 {
		return nil, problem.New("%s has no mutating webhook", objects.Names(r.Chain...))
	}
	slices.SortStableFunc(all, func(a, b target) int { return strings.Compare(a.configuration, b.configuration) })
	var order []string
	for i := range all {
		h := &all[i]
		for _, named := range r.URLs {
			name, u, ok := strings.Cut(named, "=")
			if !ok || strings.Contains(name, "/") {
				return nil, problem.New("--url %s: with --chain, the URL needs the name of its webhook", named).Hint("--url %s=%s", h.Name, named)
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

// knownNames returns an error if --url has a name that no webhook has.
func (r *runner) knownNames(all []target) error {
	for _, named := range r.URLs {
		name, _, _ := strings.Cut(named, "=")
		if !slices.ContainsFunc(all, func(h target) bool { return h.Name == name }) {
			return problem.New("--url %s: there is no webhook %s", named, name)
		}
	}
	return nil
}

// subject returns the webhooks to test as an idempotence.Subject.
func (r *runner) subject(hooks []target) (idempotence.Subject, error) {
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
