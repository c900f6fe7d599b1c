// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/cli/traffic"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/chain"
)

// RunTraffic reads recordings and returns which of their requests the configurations would send to other webhooks than
// before.
func RunTraffic(ctx context.Context, o *Options, s *screen.Screen) (*TrafficReport, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	read := o.begin(ctx, s)
	all, err := read(o.Files)
	if err != nil {
		return nil, err
	}
	for _, obj := range all {
		if kind := obj.GVK.Kind; kind != "Namespace" && kind != "CustomResourceDefinition" {
			s.Note("%s: %s is not used: with --traffic, the objects come from the recordings", obj.Where(), obj)
		}
	}
	facts, err := o.facts(ctx, all, read)
	if err != nil {
		return nil, err
	}
	c := &comparison{only: o.Webhook, groups: map[changeKey]*TrafficChange{}, report: &TrafficReport{Kubernetes: facts.Kubernetes, Source: facts.Source, Against: "recording"}}
	if c.now, err = newJudge(facts, o.Ask.NamespaceLabels); err != nil {
		return nil, err
	}
	defer c.now.close()
	if len(o.Against) > 0 {
		old, err := facts.against(o.Against, read)
		if err != nil {
			return nil, err
		}
		if c.before, err = newJudge(old, o.Ask.NamespaceLabels); err != nil {
			return nil, err
		}
		defer c.before.close()
		c.report.Against = "files"
	}
	if c.list(); o.Webhook != "" && !slices.ContainsFunc(c.webhooks, func(w *comparedWebhook) bool { return w.Name == o.Webhook }) {
		return nil, problem.New("there is no webhook %s", o.Webhook)
	}
	c.report.Files, err = traffic.Read(ctx, o.Traffic, s, func(format string, args ...any) { s.Note(format, args...) },
		func(call *traffic.Call) error { return c.add(ctx, call) })
	if err != nil {
		return nil, err
	}
	c.finish()
	return c.report, nil
}

// against returns the same facts with the webhook configurations of other files. They replace all configurations that
// come from files.
func (w *Facts) against(files []string, read func([]string) ([]*objects.Object, error)) (*Facts, error) {
	all, err := read(files)
	if err != nil {
		return nil, err
	}
	sets, err := objects.Sort(all)
	if err != nil {
		return nil, problem.New("%w", err)
	}
	if len(sets.Mutating)+len(sets.Validating) == 0 {
		return nil, problem.New("--against %s: there is no webhook configuration in these files", objects.Names(files...))
	}
	old := *w
	old.origins = map[string]string{}
	old.mutating = fromCluster(w, "MutatingWebhookConfiguration", w.mutating)
	old.validating = fromCluster(w, "ValidatingWebhookConfiguration", w.validating)
	return &old, old.addConfigurations(sets)
}

// fromCluster returns the configurations that do not come from files.
func fromCluster[T metav1.Object](w *Facts, kind string, all []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(c T) bool { return w.origins[kind+" "+c.GetName()] != "" })
}

// A comparison compares which webhooks are called for recorded requests, before and now.
type comparison struct {
	now, before *judge // before is nil if the recording has the webhooks of before
	only        string // the name of the only webhook to report, or empty
	webhooks    []*comparedWebhook
	groups      map[changeKey]*TrafficChange
	report      *TrafficReport

	contradicted int // calls of webhooks that --against does not call
	ambiguous    int // calls whose path is that of several webhooks
	foreign      int // calls of other webhooks
}

// A comparedWebhook is a webhook of before, of now, or of both. The indexes are those in the hooks of the judges, or -1.
type comparedWebhook struct {
	*TrafficWebhook
	now, before int
	index       int   // in the list of all
	hook        *hook // of now, or else of before
	// same means that nothing changed on which it depends whether the webhook is called.
	same bool
	// repeated is the number of calls of other webhooks for which this one is called before and now.
	repeated int
}

// list lists the webhooks of both configurations, first those of now.
func (c *comparison) list() {
	add := func(h *hook, now, before int) {
		w := &comparedWebhook{now: now, before: before, index: len(c.webhooks), hook: h, TrafficWebhook: &TrafficWebhook{Type: "validating", Configuration: h.configuration, Name: h.name}}
		if h.mutating {
			w.Type = "mutating"
		}
		c.webhooks = append(c.webhooks, w)
	}
	for i := range c.now.hooks {
		add(&c.now.hooks[i], i, -1)
	}
	if c.before == nil {
		return
	}
	for i := range c.before.hooks {
		h := &c.before.hooks[i]
		if w := c.same(h); w != nil {
			w.before, w.same = i, h.sameMatching(w.hook)
		} else {
			add(h, -1, i)
		}
	}
}

// same returns the webhook of now that a webhook of before has become, or nil. Its name is the same. If several
// webhooks have this name, the name of the configuration must be the same too.
func (c *comparison) same(h *hook) *comparedWebhook {
	var named []*comparedWebhook
	for _, w := range c.webhooks {
		if w.now >= 0 && w.before < 0 && w.hook.mutating == h.mutating && w.hook.name == h.name {
			named = append(named, w)
		}
	}
	i := slices.IndexFunc(named, func(w *comparedWebhook) bool { return w.hook.configuration == h.configuration })
	switch {
	case i >= 0:
		return named[i]
	case len(named) == 1:
		return named[0]
	}
	return nil
}

// sameMatching reports whether two webhooks are called for the same requests.
func (h *hook) sameMatching(other *hook) bool {
	return h.mutating == other.mutating && h.static == other.static && h.equivalent == other.equivalent && h.ignore == other.ignore && h.effects == other.effects &&
		reflect.DeepEqual(h.rules, other.rules) && reflect.DeepEqual(h.namespaces, other.namespaces) &&
		reflect.DeepEqual(h.objects, other.objects) && reflect.DeepEqual(h.conditions, other.conditions)
}

// add compares one call.
func (c *comparison) add(ctx context.Context, call *traffic.Call) error {
	c.report.Calls++
	own := c.webhookOf(call)
	now, err := c.now.explain(ctx, call)
	var before []*explainedWebhook
	if err == nil && c.before != nil {
		before, err = c.before.explain(ctx, call)
	}
	if err != nil && !errors.Is(err, errNoAnswer) {
		return err
	}
	for _, w := range c.webhooks {
		if c.only != "" && w.Name != c.only {
			continue
		}
		mine := w == own
		if mine {
			w.Recorded++
		}
		switch {
		case w.same && mine:
			w.Kept++
		case w.same:
		case err != nil:
			c.change(changeKey{w, !mine, "unknown", err.Error()}, call, "")
		default:
			c.compare(w, mine, at(now, w.now), at(before, w.before), call)
		}
	}
	return nil
}

// at returns the explanation with this index, or nil for -1.
func at(all []*explainedWebhook, i int) *explainedWebhook {
	if i < 0 {
		return nil
	}
	return all[i]
}

// compare compares one webhook for one call. mine means that it received the call.
func (c *comparison) compare(w *comparedWebhook, mine bool, now, before *explainedWebhook, call *traffic.Call) {
	was, is := No, No
	if before != nil {
		was = before.Called
	}
	if now != nil {
		is = now.Called
	}
	if mine {
		if before != nil && was == No {
			c.contradicted++
		}
		was = Yes
		if is == Unknown && before != nil && now.unknownAsBefore(before) {
			is = Yes
		}
	}
	repeated := !mine && (c.before == nil || was == Yes)
	switch {
	case is == No && was == No:
		if now != nil && now.Rejects && (before == nil || !before.Rejects) {
			c.change(changeKey{w, repeated, "rejected", now.cause(call)}, call, now.details(call))
		}
	case is == Unknown:
		c.change(changeKey{w, repeated, "unknown", now.because()}, call, "")
	case was == Unknown:
		c.change(changeKey{w, repeated, "unknown", "before, " + before.because()}, call, "")
	case is == Yes && was == Yes && repeated:
		w.repeated++
	case is == Yes && was == Yes:
		w.Kept++
	case is == Yes && before == nil:
		c.change(changeKey{w, repeated, "gained", now.because()}, call, "")
	case is == Yes:
		c.change(changeKey{w, repeated, "gained", "before, " + before.cause(call)}, call, before.details(call))
	case now == nil:
		c.change(changeKey{w, repeated, "lost", "the webhook is not in the configurations"}, call, "")
	default:
		c.change(changeKey{w, repeated, "lost", now.cause(call)}, call, now.details(call))
	}
}

// unknownAsBefore reports whether all predicates that are unknown now were the same before. The webhook received the
// call, so they matched.
func (w *explainedWebhook) unknownAsBefore(before *explainedWebhook) bool {
	for _, p := range w.Predicates {
		switch {
		case p.Answer == chain.Holds:
		case p.Answer != chain.Unknown:
			return false
		case p.Predicate == chain.ByNamespaceSelector && reflect.DeepEqual(w.hook.namespaces, before.hook.namespaces):
		case p.Predicate == chain.ByObjectSelector && reflect.DeepEqual(w.hook.objects, before.hook.objects):
		case p.Predicate == chain.ByRules && w.hook.equivalent == before.hook.equivalent && reflect.DeepEqual(w.hook.rules, before.hook.rules):
		case p.Predicate == chain.ByMatchCondition && slices.ContainsFunc(before.Predicates, func(other Predicate) bool { return other.Expression == p.Expression }):
		default:
			return false
		}
	}
	return true
}

// cause returns why a webhook is not called, without the properties of the object, so that many calls have the same.
func (w *explainedWebhook) cause(call *traffic.Call) string {
	var text string
	switch w.Decision {
	case chain.ByNamespaceSelector:
		text = "namespaceSelector " + metav1.FormatLabelSelector(w.hook.namespaces)
	case chain.ByObjectSelector:
		text = "objectSelector " + metav1.FormatLabelSelector(w.hook.objects)
	case chain.ByRules:
		text = fmt.Sprintf("no rule is for %s", requestOf(call).what())
	case chain.ByMatchCondition:
		i := slices.IndexFunc(w.Predicates, func(p Predicate) bool {
			return p.Predicate == chain.ByMatchCondition && (p.Answer == chain.Fails || p.Answer == chain.Errs)
		})
		text = fmt.Sprintf("matchCondition %q is false", w.Predicates[i].Condition)
		if w.Predicates[i].Answer == chain.Errs {
			text = fmt.Sprintf("matchCondition %q cannot be evaluated", w.Predicates[i].Condition)
		}
	default:
		text = w.Why
	}
	if w.Rejects {
		text += ", so the request is rejected"
	}
	return text
}

// details returns the properties of the object that decide, without those in the cause.
func (w *explainedWebhook) details(call *traffic.Call) string {
	switch {
	case w.Decision == chain.ByNamespaceSelector || w.Decision == chain.ByObjectSelector || w.Rejects:
		return w.Why
	case w.Decision == chain.ByRules:
		_, mismatches, _ := strings.Cut(w.Why, w.cause(call)+": ")
		return mismatches
	}
	return ""
}

// webhookOf returns the webhook that received a call, or nil. It has the name of the call or, if none has, its path.
func (c *comparison) webhookOf(call *traffic.Call) *comparedWebhook {
	fits := func(is func(h *hook) bool) (found []*comparedWebhook) {
		for _, w := range c.webhooks {
			h := w.hook
			if w.before >= 0 {
				h = &c.before.hooks[w.before]
			}
			if (c.before == nil || w.before >= 0) && (call.Type == "" || call.Type == w.Type) && is(h) {
				found = append(found, w)
			}
		}
		return found
	}
	found := fits(func(h *hook) bool { return call.Webhook != "" && h.name == call.Webhook })
	if len(found) != 1 && call.Path != "" {
		found = fits(func(h *hook) bool { return h.path == call.Path && (len(found) == 0 || h.name == call.Webhook) })
	}
	switch len(found) {
	case 0:
		c.foreign++
	case 1:
		return found[0]
	default:
		c.ambiguous++
	}
	return nil
}

// maxGroups is the maximum number of causes in a report. They bound the memory.
const maxGroups = 1000

// A changeKey has the properties that the calls of a group share. repeated means that other webhooks received the calls,
// and that calls of this one may be recorded for the same requests.
type changeKey struct {
	webhook     *comparedWebhook
	repeated    bool
	what, cause string
}

// change counts a call for which something changes.
func (c *comparison) change(key changeKey, call *traffic.Call, why string) {
	g := c.groups[key]
	if g == nil && len(c.groups) >= maxGroups {
		key.cause = "other causes"
		g = c.groups[key]
	}
	if g == nil {
		w := key.webhook
		g = &TrafficChange{Type: w.Type, Configuration: w.Configuration, Webhook: w.Name, Change: key.what, Cause: key.cause, order: len(c.groups), key: key,
			Example: Example{File: call.File, Line: call.Line, Request: requestOf(call), Why: why}}
		c.groups[key] = g
	}
	g.Calls++
}

func requestOf(call *traffic.Call) *Request {
	q := call.Review
	r := &Request{Operation: string(q.Operation), Resource: q.Resource, SubResource: q.SubResource, Kind: q.Kind, Namespace: q.Namespace,
		Name: q.Name, DryRun: ptr.Deref(q.DryRun, false), User: q.UserInfo.Username, Groups: q.UserInfo.Groups}
	if q.RequestResource != nil {
		r.Resource = *q.RequestResource
	}
	return r
}
