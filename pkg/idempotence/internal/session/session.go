// SPDX-License-Identifier: Apache-2.0

// Package session sends requests about the objects of one kind to webhooks, as the API server does.
package session

import (
	"context"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Session sends requests about objects of one kind. It makes one call at a time and is not safe for concurrent use.
type Session struct {
	Ctx        context.Context
	Kind       *objects.Kind
	Operation  admissionv1.Operation // default operation of requests
	Webhooks   []*Webhook
	Namespaces *Namespaces
	Connection *Connection
	User       *User // makes the requests; nil means an administrator

	// Behaviour has the kinds of answers of the webhooks. It is nil in the sessions of rivals.
	Behaviour *Behaviour

	// Filled has the problems of new objects that the webhook solves, in the form of FieldOf.
	Filled map[string]bool

	templates templates
	calls     *int // shared with the sessions of rivals
	patience  *patience
}

// New returns a session that creates objects, or updates them if no webhook handles CREATE.
func New(ctx context.Context, k *objects.Kind, webhooks []*Webhook, namespaces *Namespaces, connection *Connection) *Session {
	s := &Session{Ctx: ctx, Kind: k, Operation: admissionv1.Update, Webhooks: webhooks, Namespaces: namespaces, Connection: connection,
		Behaviour: newBehaviour(), Filled: map[string]bool{}, calls: new(int), patience: &patience{late: map[objects.Digest]*Answer{}}}
	if s.Handles(admissionv1.Create) {
		s.Operation = admissionv1.Create
	}
	k.Namespace = namespaces.Default
	return s
}

// With returns a copy of s that calls the given webhooks instead. The two sessions share one counter of calls (see
// Calls).
func (s *Session) With(webhooks []*Webhook) *Session {
	other := *s
	other.Webhooks, other.Behaviour = webhooks, nil
	return &other
}

// Calls returns the number of calls made.
func (s *Session) Calls() int { return *s.calls }

// Over reports whether the run must end.
func (s *Session) Over() bool { return s.Ctx.Err() != nil || s.Connection.Ended() }

// Handles reports whether the rules of any webhook match an operation.
func (s *Session) Handles(operation admissionv1.Operation) bool {
	return slices.ContainsFunc(s.Webhooks, func(w *Webhook) bool { return w.Handles(s.Kind, operation) })
}

// TakesDryRuns reports whether the API server calls all webhooks in a dry run. The API server rejects a dry run if one
// of the called webhooks has side effects.
func (s *Session) TakesDryRuns() bool {
	return !slices.ContainsFunc(s.Webhooks, func(w *Webhook) bool { return w.Handles(s.Kind, s.Operation) && !w.DryRuns() })
}

// Valid decodes and defaults a document: as a new object, or as a stored one if the operation is not CREATE. It reports
// false if the API server would reject the object, or if a Pod spec in a custom resource is unusable.
func (s *Session) Valid(doc any) (*objects.Object, bool) {
	o, err := s.object(doc)
	if err != nil || len(s.Unfilled(s.Kind.Problems(o))) > 0 || !s.templates.usable(o.Doc) {
		return nil, false
	}
	return o, true
}

// Unfilled returns the problems without those in Filled. The API server validates a new object after it has called the
// webhooks, so a user may leave out the fields that a webhook fills.
func (s *Session) Unfilled(problems []string) []string {
	if len(s.Filled) == 0 || s.Operation != admissionv1.Create || s.Kind.Old != nil {
		return problems
	}
	return slices.DeleteFunc(slices.Clone(problems), func(p string) bool { return s.Filled[FieldOf(p)] })
}

// ValidOnceFilled is like Valid, for a document that the API server rejects without the webhook. It calls the webhook.
// If the result is valid, it returns the object and true, and records the problems in Filled. sample is set for a
// sample of the user. In any other document, the webhook must have filled only single values, not lists or maps.
func (s *Session) ValidOnceFilled(instances Instances, doc any, sample bool) (*objects.Object, bool) {
	if s.Operation != admissionv1.Create {
		return nil, false
	}
	o, err := s.object(doc)
	if err != nil {
		return nil, false
	}
	out := s.Request(instances, Query{Object: o})
	if !out.OK() || len(out.Calls) == 0 || len(s.Kind.Problems(out.After)) > 0 {
		return nil, false
	}
	problems := s.Kind.Problems(o)
	if !sample && slices.ContainsFunc(problems, func(p string) bool { return !isValue(out.After.Doc, p) }) {
		return nil, false
	}
	for _, p := range problems {
		s.Filled[FieldOf(p)] = true
	}
	return o, true
}

// isValue reports whether all fields that a problem names have single values in a document, not lists or maps.
// Otherwise, a webhook that adds a container would make a Pod without containers count as valid, although users do not
// create such Pods.
func isValue(doc any, problem string) bool {
	paths := objects.ProblemPaths(problem)
	for _, pointer := range paths {
		switch value, ok := tree.Get(doc, tree.At(doc, pointer)); value.(type) {
		case map[string]any, []any:
			return false
		default:
			if !ok || value == any("") { // an encoder writes empty texts for absent ones
				return false
			}
		}
	}
	return len(paths) > 0
}

var indexes = regexp.MustCompile(`\[[^\]]*\]`)

// FieldOf returns the field and the kind of a problem, without indexes and values: "spec.size: Required value".
func FieldOf(problem string) string {
	field, rest, _ := strings.Cut(problem, ": ")
	kind, _, _ := strings.Cut(rest, ":")
	return indexes.ReplaceAllString(field, "") + ": " + kind
}

// RefusalOf returns why the API server would reject a document.
func (s *Session) RefusalOf(doc any) string {
	o, err := s.object(doc)
	if err != nil {
		return err.Error()
	}
	return strings.Join(s.Kind.Problems(o), "; ")
}

func (s *Session) object(doc any) (*objects.Object, error) {
	return s.Kind.Object(s.Kind.AsSent(doc, s.Operation != admissionv1.Create))
}

// Edited applies edits to an object, then decodes and defaults the result. It reports false if an edit cannot be made
// or the API server would reject the result.
func (s *Session) Edited(o *objects.Object, list []edits.Edit) (*objects.Object, bool) {
	doc, ok := applied(o.Doc, list)
	if !ok {
		return nil, false
	}
	return s.Valid(doc)
}

// Ahead asks a real API server about the results of edits of new objects, before Edited is called for each of them.
func (s *Session) Ahead(base []*objects.Object, lists [][]edits.Edit) {
	if s.Kind.Server == nil || s.Operation != admissionv1.Create {
		return
	}
	var docs []any
	for _, o := range base {
		for _, list := range lists {
			if doc, ok := applied(o.Doc, list); ok {
				docs = append(docs, doc)
			}
		}
	}
	s.Kind.Ahead(docs)
}

// applied returns doc with the edits. It returns false if an edit cannot be made.
func applied(doc any, list []edits.Edit) (any, bool) {
	for _, e := range list {
		next, ok := e.Apply(doc)
		if !ok {
			return nil, false
		}
		doc = next
	}
	return doc, true
}

// Instances holds one instance of each webhook of a session.
type Instances []Caller

// NewInstances returns a new instance of each webhook. A webhook at a URL cannot be restarted, so NewInstances returns
// its running instance, which may have handled calls before.
func (s *Session) NewInstances() Instances {
	all := make(Instances, len(s.Webhooks))
	for i, w := range s.Webhooks {
		all[i] = w.newInstance(s.Connection)
	}
	return all
}

// AsUpdate turns all later requests into updates, until leave is called. If old is not nil, it is the stored object of
// those updates. Otherwise the stored object is equal to the new one.
func (s *Session) AsUpdate(old *objects.Object) (leave func()) {
	operation, was := s.Operation, s.Kind.Old
	s.Operation, s.Kind.Old = admissionv1.Update, old
	return func() { s.Operation, s.Kind.Old = operation, was }
}
