// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// engineKey is the label, or annotation, with the engine's id on all that it makes.
	engineKey = "chain.admitkit/engine"
	// requestKey is the entry in a user's extra with the id of the request.
	requestKey = "chain.admitkit/request"

	mutatingPath   = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	validatingPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

	markerMessage = "the configurations are enforced"
)

// register stores the configurations, and those of the markers after them.
func (s *serverEngine) register(ctx context.Context, w Webhooks) error {
	all, err := w.completed()
	if err != nil {
		return err
	}
	last := ""
	own := onlyFor(fmt.Sprintf("v.startsWith(%q)", s.id+"-"))
	index := 0
	for _, c := range all.mutating {
		for i := range c.Webhooks {
			h := &c.Webhooks[i]
			t := &target{configuration: c.Name, webhook: h.Name, mutating: true, index: index, failurePolicy: *h.FailurePolicy, handler: w.Handlers[h.Name]}
			if err := s.proxy.take(t, &h.ClientConfig); err != nil {
				return err
			}
			h.MatchConditions = slices.Insert(h.MatchConditions, 0, own)
			index++
		}
		if err := s.storeMutating(ctx, c); err != nil {
			return err
		}
		last = max(last, c.Name)
	}
	index = 0
	for _, c := range all.validating {
		for i := range c.Webhooks {
			h := &c.Webhooks[i]
			t := &target{configuration: c.Name, webhook: h.Name, index: index, failurePolicy: *h.FailurePolicy, handler: w.Handlers[h.Name]}
			if err := s.proxy.take(t, &h.ClientConfig); err != nil {
				return err
			}
			h.MatchConditions = slices.Insert(h.MatchConditions, 0, own)
			index++
		}
		if err := s.storeValidating(ctx, c); err != nil {
			return err
		}
		last = max(last, c.Name)
	}
	return s.registerMarkers(ctx, last)
}

func (s *serverEngine) storeMutating(ctx context.Context, c *admissionregistrationv1.MutatingWebhookConfiguration) error {
	metav1.SetMetaDataLabel(&c.ObjectMeta, engineKey, s.id)
	return s.api.write(ctx, http.MethodPost, mutatingPath, c)
}

func (s *serverEngine) storeValidating(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	metav1.SetMetaDataLabel(&c.ObjectMeta, engineKey, s.id)
	return s.api.write(ctx, http.MethodPost, validatingPath, c)
}

// onlyFor is the condition that keeps a webhook from everybody's requests but those whose id
// passes a CEL test of v. A condition that is false decides, even if others fail.
func onlyFor(test string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: requestKey, Expression: fmt.Sprintf(
		"has(request.userInfo.extra) && %[1]q in request.userInfo.extra && request.userInfo.extra[%[1]q].exists(v, %[2]s)", requestKey, test)}
}

// registerMarkers stores a configuration of each sort that tells when it is enforced. The API
// server learns of configurations in the order in which they were stored, so the others are
// enforced then too. The markers sort last: they move no other webhook from its place.
func (s *serverEngine) registerMarkers(ctx context.Context, last string) error {
	name := "zzz-admitkit-marker-" + s.id
	for name < last && len(name) < 200 {
		name = "zzz" + name
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	client := admissionregistrationv1.WebhookClientConfig{URL: new(s.proxy.url + markerPath), CABundle: s.proxy.bundle}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{{
		Name: "mutating.marker.chain.admitkit", ClientConfig: client, Rules: rules,
		SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{onlyFor(fmt.Sprintf("v == %q", s.markerID(true)))},
	}}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "validating.marker.chain.admitkit", ClientConfig: client, Rules: rules,
		SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{onlyFor(fmt.Sprintf("v == %q", s.markerID(false)))},
	}}}
	mutating.Name, validating.Name = name, name
	if err := s.storeMutating(ctx, mutating); err != nil {
		return err
	}
	return s.storeValidating(ctx, validating)
}

// markerID is the id of a marker's requests, which no other webhook is called for.
func (s *serverEngine) markerID(mutating bool) string {
	return fmt.Sprintf("marker-%s-%t", s.id, mutating)
}

// awaitEnforced waits until both markers answer.
func (s *serverEngine) awaitEnforced(ctx context.Context) error {
	body := encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "marker-"}})
	for _, mutating := range []bool{true, false} {
		id := s.markerID(mutating)
		user := withID(administrator, id)
		var last error
		err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			last = s.api.do(ctx, message{
				method: http.MethodPost, path: "/api/v1/namespaces/default/configmaps", body: body, user: &user, id: id,
				query: url.Values{"dryRun": {metav1.DryRunAll}},
			}, nil)
			return last != nil && strings.Contains(last.Error(), markerMessage), nil
		})
		if err != nil {
			return fmt.Errorf("the API server does not enforce what it stored: %w; its last answer: %w", err, last)
		}
	}
	return nil
}

// administrator is who asks unless a request says it.
var administrator = authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}}

// withID returns the user with the id of a request.
func withID(user authenticationv1.UserInfo, id string) authenticationv1.UserInfo {
	if user.Username == "" && user.UID == "" && len(user.Groups) == 0 && len(user.Extra) == 0 {
		user = administrator
	}
	extra := map[string]authenticationv1.ExtraValue{requestKey: {id}}
	for key, values := range user.Extra {
		extra[key] = values
	}
	user.Extra = extra
	return user
}

// unregister removes all configurations of the engine. Nobody notices how soon the API server
// learns of it: they match no requests but those of the engine.
func (s *serverEngine) unregister(ctx context.Context) error {
	return s.removeConfigurations(ctx, s.id)
}
