// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A registrar stores the webhook configurations of an engine.
type registrar struct {
	engineID string
	api      *API
	proxy    *proxy
}

// register stores the configurations, and then the marker configurations: see registerMarkers. It changes the
// clientConfigs and the matchConditions of the webhooks.
func (r *registrar) register(ctx context.Context, mutating []*admissionregistrationv1.MutatingWebhookConfiguration,
	validating []*admissionregistrationv1.ValidatingWebhookConfiguration, handlers map[string]http.Handler) error {
	last := ""
	own := onlyFor(fmt.Sprintf("v.startsWith(%q)", r.engineID+"-"))
	index := 0
	for _, c := range mutating {
		for i := range c.Webhooks {
			h := &c.Webhooks[i]
			t := &Target{Configuration: c.Name, Webhook: h.Name, Mutating: true, Index: index, FailurePolicy: *h.FailurePolicy, handler: handlers[h.Name]}
			if err := r.proxy.addTarget(t, &h.ClientConfig); err != nil {
				return err
			}
			h.MatchConditions = slices.Insert(h.MatchConditions, 0, own)
			index++
		}
		if err := r.storeMutating(ctx, c); err != nil {
			return err
		}
		last = max(last, c.Name)
	}
	index = 0
	for _, c := range validating {
		for i := range c.Webhooks {
			h := &c.Webhooks[i]
			t := &Target{Configuration: c.Name, Webhook: h.Name, Index: index, FailurePolicy: *h.FailurePolicy, handler: handlers[h.Name]}
			if err := r.proxy.addTarget(t, &h.ClientConfig); err != nil {
				return err
			}
			h.MatchConditions = slices.Insert(h.MatchConditions, 0, own)
			index++
		}
		if err := r.storeValidating(ctx, c); err != nil {
			return err
		}
		last = max(last, c.Name)
	}
	return r.registerMarkers(ctx, last)
}

func (r *registrar) storeMutating(ctx context.Context, c *admissionregistrationv1.MutatingWebhookConfiguration) error {
	metav1.SetMetaDataLabel(&c.ObjectMeta, EngineKey, r.engineID)
	return r.api.Write(ctx, http.MethodPost, MutatingPath, c)
}

func (r *registrar) storeValidating(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	metav1.SetMetaDataLabel(&c.ObjectMeta, EngineKey, r.engineID)
	return r.api.Write(ctx, http.MethodPost, ValidatingPath, c)
}

// registerMarkers stores the marker configurations: one mutating and one validating webhook that deny every request
// they get. A denial shows that the API server calls the webhook. The API server loads configurations in the order
// in which they were stored, so it then calls the engine's other webhooks too. The names of the marker
// configurations sort last, so that they do not change the indexes of other webhooks.
func (r *registrar) registerMarkers(ctx context.Context, last string) error {
	name := "zzz-admitkit-marker-" + r.engineID
	for name < last && len(name) < 200 {
		name = "zzz" + name
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	client := admissionregistrationv1.WebhookClientConfig{URL: new(r.proxy.url + markerPath), CABundle: r.proxy.bundle}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{{
		Name: "mutating.marker.chain.admitkit", ClientConfig: client, Rules: rules,
		SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{onlyFor(fmt.Sprintf("v == %q", r.markerID(true)))},
	}}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "validating.marker.chain.admitkit", ClientConfig: client, Rules: rules,
		SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{onlyFor(fmt.Sprintf("v == %q", r.markerID(false)))},
	}}}
	mutating.Name, validating.Name = name, name
	if err := r.storeMutating(ctx, mutating); err != nil {
		return err
	}
	return r.storeValidating(ctx, validating)
}

// markerID returns a request id. With this id, the API server calls only the mutating or only the validating marker
// webhook, and no other webhook of the engine.
func (r *registrar) markerID(mutating bool) string {
	return fmt.Sprintf("marker-%s-%t", r.engineID, mutating)
}

// awaitEnforced waits until the API server calls both marker webhooks.
func (r *registrar) awaitEnforced(ctx context.Context) error {
	body := encodeJSON(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "marker-"}})
	for _, mutating := range []bool{true, false} {
		id := r.markerID(mutating)
		user := withID(Administrator, id)
		var last error
		err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			last = r.api.Do(ctx, Message{
				Method: http.MethodPost, Path: "/api/v1/namespaces/default/configmaps", Body: body, User: &user, id: id,
				Query: url.Values{"dryRun": {metav1.DryRunAll}},
			}, nil)
			return apierrors.ReasonForError(last) == markerReason, nil
		})
		if err != nil {
			return fmt.Errorf("the API server does not call the registered webhooks: %w; its last response: %w", err, last)
		}
	}
	return nil
}

// removeConfigurations deletes the webhook configurations of an engine.
func removeConfigurations(ctx context.Context, client *API, engine string) error {
	var errs []error
	for _, path := range []string{MutatingPath, ValidatingPath} {
		errs = append(errs, client.Do(ctx, Message{Method: http.MethodDelete, Path: path, Query: url.Values{"labelSelector": {EngineKey + "=" + engine}}}, nil))
	}
	return errors.Join(errs...)
}
