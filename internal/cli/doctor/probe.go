// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/admitkit/admitkit/internal/doctor"
	"github.com/admitkit/admitkit/internal/rulematch"
)

// maxAttempts limits the dry runs for one webhook.
const maxAttempts = 4

// probe sends dry runs of requests that match the webhooks, so that the API server calls them now. The metrics show the
// webhooks that it called, and the failures that it ignored.
func (r *reader) probe(ctx context.Context) {
	p := prober{reader: r, resources: map[schema.GroupVersion]*metav1.APIResourceList{}}
	var err error
	if p.discovery, err = discovery.NewDiscoveryClientForConfig(r.config); err != nil {
		return // other clients of this configuration work
	}
	p.namespaces, _ = list[metav1.PartialObjectMetadata](ctx, r, resource("", "v1", "namespaces"), "", metav1.ListOptions{})
	servers := r.apiServers(ctx)
	before, counting := r.scrape(ctx, servers)
	tried := map[*doctor.Target]error{}
	for _, t := range r.s.Targets {
		if w := r.webhooks[t]; w != nil {
			r.step("probing %s", t.Webhook)
			tried[t] = p.webhook(ctx, w)
		}
	}
	var counted *doctor.Metrics
	if counting {
		after, _ := r.scrape(ctx, servers)
		counted, _ = between(before, after)
	}
	for _, t := range r.s.Targets {
		err, probed := tried[t]
		if !probed {
			continue
		}
		var calls *doctor.Calls
		if counted != nil {
			calls = counted.Calls[doctor.CallKey{Kind: t.Kind, Name: t.Webhook}]
		}
		switch {
		case calls != nil && calls.Ignored > 0:
			r.s.Failures[t] = append(r.s.Failures[t], fmt.Sprintf("%.0f of %.0f calls failed, and the API server ignored the failures", calls.Ignored, calls.All))
		case calls != nil && calls.All > 0:
		case err != nil:
			r.notProbed(t.Webhook, err)
		case counted != nil && len(r.s.Failures[t]) == 0:
			r.notProbed(t.Webhook, errNotCalled)
		}
	}
}

// A NotProbed has webhooks that dry runs did not reach, and the reason.
type NotProbed struct {
	Webhooks []string `json:"webhooks"`
	Reason   string   `json:"reason"`
}

// These are reasons why dry runs did not reach a webhook.
var (
	errNotCalled   = errors.New("the API server did not call these: their conditions exclude the dry runs, or the requests were rejected earlier")
	errSideEffects = errors.New("sideEffects of these exclude dry runs")
	errNothing     = errors.New("no object was found that these are called for")
)

func (r *reader) notProbed(webhook string, err error) {
	at := slices.IndexFunc(r.unprobed, func(n NotProbed) bool { return n.Reason == err.Error() })
	if at < 0 {
		at = len(r.unprobed)
		r.unprobed = append(r.unprobed, NotProbed{Reason: err.Error()})
	}
	r.unprobed[at].Webhooks = append(r.unprobed[at].Webhooks, webhook)
}

// A prober sends dry runs that match the rules and selectors of a webhook.
type prober struct {
	*reader
	discovery  discovery.DiscoveryInterface
	namespaces []metav1.PartialObjectMetadata
	resources  map[schema.GroupVersion]*metav1.APIResourceList // nil if the version is not served
}

// webhook sends dry runs for one webhook until the API server admits or rejects one. It returns an error if none could
// be sent.
func (p *prober) webhook(ctx context.Context, w *admissionregistrationv1.ValidatingWebhook) error {
	if s := w.SideEffects; s == nil || *s != admissionregistrationv1.SideEffectClassNone && *s != admissionregistrationv1.SideEffectClassNoneOnDryRun {
		return errSideEffects
	}
	result := errNothing
	attempts := 0
	for _, rule := range w.Rules {
		for _, candidate := range p.candidates(rule) {
			if attempts == maxAttempts || ctx.Err() != nil {
				return result
			}
			sent, err := p.send(ctx, w, rule, candidate)
			if err == nil && !sent {
				continue
			}
			attempts++
			if err = p.judge(err); err == nil {
				return nil
			}
			result = err
		}
	}
	return result
}

// calling matches the message of the API server for a call that failed (k8s.io/apiserver pkg/util/webhook/error.go,
// ErrCallingWebhook). Nothing else distinguishes this error.
var calling = regexp.MustCompile(`^Internal error occurred: failed calling webhook "([^"]+)": (?s:(.*))$`)

// judge records the webhook of a call that failed. It returns an error if the API server rejected the request before it
// called webhooks.
func (p *prober) judge(err error) error {
	if err == nil {
		return nil
	}
	match := calling.FindStringSubmatch(err.Error())
	if match == nil {
		if apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "admission webhook") {
			return err
		}
		return nil // a denial, or a check of the API server: the metrics tell whether the webhook was called
	}
	for _, t := range failing(p.s.Targets, match[1], match[2]) {
		if !slices.Contains(p.s.Failures[t], match[2]) {
			p.s.Failures[t] = append(p.s.Failures[t], match[2])
		}
	}
	return nil
}

// failing returns the webhooks that a message of the API server can be about. Two configurations may have webhooks of the
// same name. Then the URL in the message says which one it is, if there is one.
func failing(targets []*doctor.Target, webhook, message string) (all []*doctor.Target) {
	for _, t := range targets {
		if t.Webhook == webhook && t.Fails {
			all = append(all, t)
		}
	}
	called := slices.DeleteFunc(slices.Clone(all), func(t *doctor.Target) bool { return !strings.Contains(message, `"`+urlOf(t)+"?") })
	if len(called) > 0 {
		return called
	}
	return all
}

// urlOf returns the URL that the API server calls, without its parameters.
func urlOf(t *doctor.Target) string {
	if b := t.Backend; b.IsService() {
		return "https://" + net.JoinHostPort(b.Host(), strconv.Itoa(int(b.Port))) + "/" + strings.TrimPrefix(t.Path, "/")
	}
	return t.Backend.URL + t.Path
}

// A candidate is a resource that a rule covers.
type candidate struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
}

// samples are small objects that can be created, by resource. The prober uses them for rules with wildcards, too.
var samples = []struct {
	schema.GroupVersionResource
	content map[string]any
}{
	{resource("", "v1", "configmaps"), nil},
	{resource("", "v1", "pods"), map[string]any{"spec": podSpec}},
	{resource("", "v1", "secrets"), nil},
	{resource("", "v1", "serviceaccounts"), nil},
	{resource("", "v1", "services"), map[string]any{"spec": map[string]any{"clusterIP": "None", "ports": []any{map[string]any{"port": int64(80)}}}}},
	{resource("", "v1", "namespaces"), nil},
	{resource("apps", "v1", "deployments"), map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": podLabels}, "template": map[string]any{"metadata": map[string]any{"labels": podLabels}, "spec": podSpec},
	}}},
	{resource("batch", "v1", "jobs"), map[string]any{"spec": map[string]any{"template": map[string]any{"spec": jobSpec}}}},
	{resource("coordination.k8s.io", "v1", "leases"), nil},
}

var (
	podLabels = map[string]any{"admitkit.dev/probe": "true"}
	podSpec   = map[string]any{"containers": []any{map[string]any{"name": "probe", "image": "registry.k8s.io/pause:3.10"}}}
	jobSpec   = map[string]any{"restartPolicy": "Never", "containers": podSpec["containers"]}
)

// candidates returns the resources that a rule names, and the samples that it covers by a wildcard.
func (p *prober) candidates(rule admissionregistrationv1.RuleWithOperations) (all []candidate) {
	add := func(group, version, name string) {
		if c, ok := p.served(schema.GroupVersion{Group: group, Version: version}, name); ok && !slices.Contains(all, c) && rulematch.MatchesScope(rule.Scope, c.namespaced) {
			all = append(all, c)
		}
	}
	for _, group := range rule.APIGroups {
		for _, version := range rule.APIVersions {
			for _, name := range rule.Resources {
				if name, sub, _ := strings.Cut(name, "/"); group != "*" && name != "*" && (sub == "" || sub == "*") {
					if version == "*" {
						version = "v1"
					}
					add(group, version, name)
				}
			}
		}
	}
	for _, s := range samples {
		for _, operation := range []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update} {
			if rulematch.MatchesAnyScope(rule, rulematch.Request{Operation: operation, Group: s.Group, Version: s.Version, Resource: s.Resource}) {
				add(s.Group, s.Version, s.Resource)
			}
		}
	}
	return all
}

// served asks the API server for the kind of a resource. It returns false if the API server does not serve it.
func (p *prober) served(version schema.GroupVersion, name string) (candidate, bool) {
	found, known := p.resources[version]
	if !known {
		found, _ = p.discovery.ServerResourcesForGroupVersion(version.String()) // nil if the version is not served
		p.resources[version] = found
	}
	if found == nil {
		return candidate{}, false
	}
	at := slices.IndexFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	if at < 0 {
		return candidate{}, false
	}
	return candidate{version.WithResource(name), found.APIResources[at].Kind, found.APIResources[at].Namespaced}, true
}

// send sends a dry run that creates a sample, or that patches a stored object without a change. It returns false if there
// is neither.
func (p *prober) send(ctx context.Context, w *admissionregistrationv1.ValidatingWebhook, rule admissionregistrationv1.RuleWithOperations, c candidate) (bool, error) {
	namespaces := p.selected(w, c)
	if len(namespaces) == 0 {
		return false, nil
	}
	dryRun := []string{metav1.DryRunAll}
	if rulematch.Contains(rule.Operations, admissionregistrationv1.Create) {
		if object, ok := sampleOf(c, w); ok {
			_, err := p.in(c, namespaces[0]).Create(ctx, object, metav1.CreateOptions{DryRun: dryRun})
			return true, err
		}
	}
	if !rulematch.Contains(rule.Operations, admissionregistrationv1.Update) {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(orEverything(w.ObjectSelector))
	if err != nil {
		return false, nil // the API server validates selectors
	}
	const most = 100 // objects, of which one may be in a selected namespace
	found, err := p.client.Resource(c.GroupVersionResource).List(ctx, metav1.ListOptions{Limit: most, LabelSelector: selector.String()})
	if err != nil {
		return false, err
	}
	for _, object := range found.Items {
		if slices.Contains(namespaces, object.GetNamespace()) {
			_, err := p.in(c, object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: dryRun})
			return true, err
		}
	}
	return false, nil
}

func (p *prober) in(c candidate, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return p.client.Resource(c.GroupVersionResource)
	}
	return p.client.Resource(c.GroupVersionResource).Namespace(namespace)
}

// orEverything returns the selector, or for nil one that selects everything.
func orEverything(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}

// selected returns the namespaces that the namespaceSelector selects, or "" for a cluster-scoped resource.
func (p *prober) selected(w *admissionregistrationv1.ValidatingWebhook, c candidate) (all []string) {
	if !c.namespaced {
		return []string{""}
	}
	selector, err := metav1.LabelSelectorAsSelector(orEverything(w.NamespaceSelector))
	if err != nil {
		return nil
	}
	for _, n := range p.namespaces {
		if n.DeletionTimestamp == nil && selector.Matches(labels.Set(n.Labels)) {
			all = append(all, n.Name)
		}
	}
	return all
}

// sampleOf returns an object to create that the objectSelector selects.
func sampleOf(c candidate, w *admissionregistrationv1.ValidatingWebhook) (*unstructured.Unstructured, bool) {
	for _, s := range samples {
		if s.GroupVersionResource != c.GroupVersionResource {
			continue
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		for key, value := range s.content {
			u.Object[key] = value
		}
		u.SetGroupVersionKind(c.GroupVersion().WithKind(c.kind))
		u.SetGenerateName("admitkit-doctor-")
		set, ok := labelsFor(w.ObjectSelector)
		u.SetLabels(set)
		return u, ok
	}
	return nil, false
}

// labelsFor returns labels that a selector selects.
func labelsFor(s *metav1.LabelSelector) (map[string]string, bool) {
	set := map[string]string{}
	s = orEverything(s)
	for key, value := range s.MatchLabels {
		set[key] = value
	}
	for _, e := range s.MatchExpressions {
		switch {
		case e.Operator == metav1.LabelSelectorOpIn && set[e.Key] == "":
			set[e.Key] = e.Values[0]
		case e.Operator == metav1.LabelSelectorOpExists && set[e.Key] == "":
			set[e.Key] = "true"
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return set, err == nil && selector.Matches(labels.Set(set))
}
