// SPDX-License-Identifier: Apache-2.0

// Package objects models what the API server does to objects of one kind: it defaults and validates them, and prepares
// them for storage. The package does this in process, or asks a real API server.
package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/chain"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// watcher is the name of a webhook of the harness. It records the objects that the API server sends to webhooks.
const watcher = "watcher.idempotence.admitkit.dev"

// Connect connects to the API server. It returns an engine that sends requests to it, and a function that disconnects.
// If server is nil, the engine is nil.
func Connect(server *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) (chain.Engine, func() error, error) {
	if server == nil {
		return nil, func() error { return nil }, nil
	}
	everything := admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}}
	sideEffects, exact := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Exact
	config := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: watcher},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: watcher, MatchPolicy: &exact, SideEffects: &sideEffects, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1/")},
			Rules: []admissionregistrationv1.RuleWithOperations{{Rule: everything, Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Create, admissionregistrationv1.Update}}},
		}},
	}
	engine, err := chain.Connect(server, chain.Webhooks{
		Mutating: []*admissionregistrationv1.MutatingWebhookConfiguration{config},
		Handlers: map[string]http.Handler{watcher: http.HandlerFunc(allow)},
	}, chain.ConnectOptions{CRDs: crds, CallsOnly: true})
	if err != nil {
		return nil, nil, fmt.Errorf("the connection failed: %w", err)
	}
	return engine, engine.Close, nil
}

// allow is a webhook that allows each request.
func allow(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "want an AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response, review.Request = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}, nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// A RealServer defaults and validates the objects of a kind with a real API server.
type RealServer struct {
	Ctx     context.Context
	Engine  chain.Engine
	Kind    *Kind
	Over    func() bool                 // reports whether the run has ended
	Fail    func(error)                 // ends the run
	Limit   func(text string)           // reports a limit of the engine
	updates recall[[2]Digest, []string] // reasons to reject an update, by its new and old object
	early   map[Digest]answer           // answers for new objects that Ahead asked for
}

// takeIn sends a new object to the API server. It returns the object that webhooks get, with the API server's reasons
// to reject it.
func (s *RealServer) takeIn(raw []byte, local func([]byte) (*Object, error)) (*Object, error) {
	sent, err := tree.Decode(raw)
	if err != nil {
		return nil, err
	}
	key := DigestOf(raw)
	a, ok := s.early[key]
	if delete(s.early, key); !ok {
		a = s.ask(admissionv1.Create, s.bare(sent), nil)
	}
	seen, refusals, err := s.read(a)
	switch {
	case err != nil:
		return nil, err
	case seen == nil && len(refusals) > 0 && strings.HasPrefix(refusals[0], undecodable):
		return nil, errors.New(refusals[0])
	case seen == nil: // refused before webhooks are called
		seen = raw
	}
	doc, err := tree.Decode(seen)
	if err != nil {
		return nil, err
	}
	o, err := local(tree.Encode(s.withIdentity(s.bare(doc), sent)))
	if err != nil {
		return nil, err
	}
	o.refusals = refusals
	return o, nil
}

// undecodable is the start of the API server's message about a body that it cannot decode.
const undecodable = "the API server cannot decode it"

// updateProblems returns the API server's reasons to reject an update.
func (s *RealServer) updateProblems(o, old *Object) []string {
	key := [2]Digest{DigestOf(o.Raw), DigestOf(old.Raw)}
	if refusals, ok := s.updates.get(key); ok {
		return refusals
	}
	_, refusals, err := s.read(s.ask(admissionv1.Update, s.bare(o.Doc), s.bare(old.Doc)))
	if err != nil {
		return nil
	}
	s.updates.put(key, refusals, 0)
	return refusals
}

// An answer is the API server's answer to a dry run.
type answer struct {
	result *chain.Result
	err    error
}

// ask sends a request as a dry run. It may be called by several goroutines.
func (s *RealServer) ask(operation admissionv1.Operation, doc, old any) (a answer) {
	request := chain.Request{Operation: operation, Resource: s.Kind.Resource, Object: tree.Encode(doc), DryRun: true}
	if s.Kind.Namespaced {
		request.Namespace = NamespaceOf(doc, s.Kind.Namespace)
	}
	if old != nil {
		request.OldObject = tree.Encode(old)
	}
	a.result, a.err = s.Engine.Admit(s.Ctx, request)
	return a
}

// read returns the object that webhooks got, or nil if none was called, and the reasons to reject the request.
func (s *RealServer) read(a answer) (seen []byte, refusals []string, err error) {
	result := a.result
	if a.err != nil {
		if s.Ctx.Err() == nil && !s.Over() {
			s.Fail(a.err)
		}
		return nil, nil, a.err
	}
	for _, call := range result.Calls {
		var review struct {
			Request struct {
				Object json.RawMessage `json:"object"`
			} `json:"request"`
		}
		if err := json.Unmarshal(call.Request, &review); err != nil {
			return nil, nil, err
		}
		seen = review.Request.Object
	}
	for _, limit := range result.Limits {
		if slices.Contains(irrelevantLimits, limit.Code) {
			continue
		}
		s.Limit(limit.Message)
	}
	if rejection := result.Rejection; rejection != nil && !(seen != nil && rejection.Reason == metav1.StatusReasonAlreadyExists) {
		reason := rejection.Message
		if rejection.Reason == metav1.StatusReasonBadRequest {
			reason = undecodable + ": " + reason
		}
		refusals = append(refusals, reason)
	}
	return seen, refusals, nil
}

// irrelevantLimits are limits of the engine that do not affect the harness. They concern audit annotations and webhooks
// that were not called.
var irrelevantLimits = []chain.LimitCode{chain.NoAnnotations, chain.SelectionUnknown, chain.MutatedDerived}

// NamespaceOf returns the namespace in a document, or other if the document has none.
func NamespaceOf(doc any, other string) string {
	if name, ok := tree.Get(doc, edits.Metadata.Member("namespace")); ok && name != "" {
		text, _ := name.(string)
		return text
	}
	return other
}

// bare returns a document without the metadata that the API server sets itself.
func (s *RealServer) bare(doc any) any {
	for _, name := range append([]string{"managedFields", "generation"}, SystemFields...) {
		if next, ok := tree.Remove(doc, edits.Metadata.Member(name)); ok {
			doc = next
		}
	}
	return doc
}

// withIdentity returns doc with the fields that bare removes, as sent has them.
func (s *RealServer) withIdentity(doc, sent any) any {
	for _, name := range append([]string{"generation"}, SystemFields...) {
		if value, ok := tree.Get(sent, edits.Metadata.Member(name)); ok {
			if next, ok := tree.Put(doc, edits.Metadata.Member(name), value); ok {
				doc = next
			}
		}
	}
	return doc
}
