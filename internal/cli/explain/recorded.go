// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/cli/traffic"
	"github.com/admitkit/admitkit/internal/rulematch"
	"github.com/admitkit/admitkit/pkg/chain"
)

// A recording is what is known about a recorded request beyond the request itself. Its object is the one that the
// webhook received, so the API server has set its defaults, and its admission plugins have run.
type recording struct {
	// original is the resource of the API request. It differs from that of the object if the API server converted it.
	original schema.GroupVersionResource
	// redacted means that secrets are replaced by pseudonyms.
	redacted bool
	// validating means that a validating webhook received the object.
	validating bool
}

// recorded returns the request of a recorded call.
func (w *Facts) recorded(c *traffic.Call) *knownRequest {
	q := c.Review
	gvr := schema.GroupVersionResource(q.Resource)
	r := resource{GroupVersionResource: gvr, namespaced: q.Namespace != "" && !isNamespace(gvr)}
	r.definition = w.definition(func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == gvr.Group && d.Spec.Names.Plural == gvr.Resource
	})
	kind := schema.GroupVersionKind(q.Kind)
	r.unsure = r.definition == nil && !(builtInGroup(gvr.Group) && servedByDefault(gvr.GroupVersion().WithKind(kind.Kind)))
	a := &knownRequest{resource: r, kind: kind, recording: &recording{original: gvr, redacted: c.Key != "", validating: c.Type == "validating"}}
	if q.RequestResource != nil {
		a.recording.original = schema.GroupVersionResource(*q.RequestResource)
	}
	a.Operation, a.Resource, a.SubResource = q.Operation, q.Resource, q.SubResource
	a.Name, a.Object, a.OldObject, a.DryRun, a.User = q.Name, q.Object.Raw, q.OldObject.Raw, ptr.Deref(q.DryRun, false), q.UserInfo
	if r.namespaced {
		a.Namespace = q.Namespace
	}
	a.extraUnknown = a.recording.redacted && len(q.UserInfo.Extra) > 0
	return a
}

func isNamespace(gvr schema.GroupVersionResource) bool {
	return gvr.Group == "" && gvr.Resource == "namespaces"
}

// replacedFields are fields whose values a recording replaces in objects of a kind, or of all kinds for an empty kind.
// A condition that has all words of an entry may read them.
var replacedFields = []struct {
	kind  string
	words []string
}{
	{"Secret", []string{"data"}}, {"Secret", []string{"stringData"}}, {"ConfigMap", []string{"data"}}, {"ConfigMap", []string{"binaryData"}},
	{"", []string{"env", "value"}},
}

// recordedCondition sets the result of a condition to unknown if it reads values that the recording does not have.
func (t *explainer) recordedCondition(h *hook, m mentions, p *Predicate) {
	r := t.req.recording
	switch {
	case !m.body:
	case r.original != t.req.resource.GroupVersionResource:
		p.set(chain.Unknown, fmt.Sprintf("the API request has the object in %s, and the recording in %s", r.original.GroupVersion(), t.req.resource.GroupVersion()))
	case r.redacted && slices.ContainsFunc(replacedFields, func(f struct {
		kind  string
		words []string
	}) bool {
		return (f.kind == "" || f.kind == t.req.kind.Kind) && !slices.ContainsFunc(f.words, func(word string) bool { return !m.words[word] })
	}):
		p.set(chain.Unknown, "it reads values that the recording replaces by pseudonyms")
	case !h.mutating && !r.validating && t.byRegistry(m) != "":
		p.set(chain.Unknown, fmt.Sprintf("it is %s for the recorded object, but the API server may set %s before it calls validating webhooks", value(p), t.byRegistry(m)))
	}
}

// exactRules decides about the rules of a webhook with matchPolicy Exact, if the API server converted the object of the
// recorded call. The rules then match the resource of the API request, and the webhook would receive another object.
func (t *explainer) exactRules(h *hook, p *Predicate) {
	asked := t.req.ruleRequest()
	original := t.req.recording.original
	asked.Group, asked.Version, asked.Resource = original.Group, original.Version, original.Resource
	if slices.ContainsFunc(h.rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return rulematch.Matches(rule, asked) }) {
		p.set(chain.Unknown, fmt.Sprintf("the API request is for %s, and the recording has the object in %s", original.GroupVersion(), t.req.resource.GroupVersion()))
		return
	}
	p.set(chain.Fails, fmt.Sprintf("no rule is for %s of %s %s", t.req.Operation, original.GroupVersion(), original.Resource))
}

// A judge explains recorded requests. It is not safe for concurrent use.
type judge struct {
	facts   *Facts
	asked   map[string]string // labels of all namespaces, if they are given
	labels  map[string]map[string]string
	unknown map[string]bool
	engine  *chain.Chain
	hooks   []hook
}

func newJudge(w *Facts, namespaceLabels map[string]string) (*judge, error) {
	j := &judge{facts: w, asked: namespaceLabels, labels: map[string]map[string]string{}, unknown: map[string]bool{}}
	if namespaceLabels == nil { // each restart takes long
		for name, labels := range w.namespaces {
			j.labels[name] = maps.Clone(labels)
		}
	}
	return j, j.restart()
}

// restart makes an engine that knows the labels of all namespaces so far.
func (j *judge) restart() error {
	j.close()
	var err error
	j.engine, j.hooks, err = j.facts.engine(j.labels, chain.Policies{}) // policies have changed the recorded objects already
	return err
}

func (j *judge) close() {
	if j.engine != nil {
		_ = j.engine.Close() // engine has no connections to close
	}
}

// errNoAnswer is the error for a request that cannot be explained.
var errNoAnswer = errors.New("the request cannot be explained")

// explain returns the explanations for all webhooks, in the order of j.hooks. It returns an error that wraps errNoAnswer
// for a request that cannot be explained.
func (j *judge) explain(ctx context.Context, c *traffic.Call) ([]*explainedWebhook, error) {
	t := explainer{facts: j.facts, req: j.facts.recorded(c)}
	if err := j.namespace(ctx, t.req.Namespace); err != nil {
		return nil, err
	}
	t.hooks, t.namespaceUnknown = j.hooks, j.unknown[t.req.Namespace]
	e, err := j.engine.Explain(ctx, t.req.Request)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	all := make([]*explainedWebhook, len(e.Webhooks))
	for i := range e.Webhooks {
		all[i] = t.webhook(i, &e.Webhooks[i])
	}
	return all, nil
}

// namespace finds the labels of a namespace.
func (j *judge) namespace(ctx context.Context, name string) error {
	if _, known := j.labels[name]; known || name == "" {
		return nil
	}
	labels, known, err := j.asked, true, error(nil)
	if j.asked == nil {
		labels, known, err = j.facts.labelsOf(ctx, name)
	}
	if err != nil { // it is not in the cluster any more
		if ctx.Err() != nil {
			return ctx.Err()
		}
		known = false
	}
	j.labels[name], j.unknown[name] = map[string]string{}, !known
	if known && labels != nil {
		j.labels[name] = labels
	}
	return j.restart()
}
