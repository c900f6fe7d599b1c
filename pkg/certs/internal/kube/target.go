// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// targetResources has the resource of each kind of Target.
var targetResources = map[string]schema.GroupVersionResource{
	MutatingWebhookConfiguration:   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	ValidatingWebhookConfiguration: {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	CustomResourceDefinition:       {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	APIService:                     {Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
}

// bundlePaths has the path of the caBundle for the kinds with a single one.
var bundlePaths = map[string][]string{
	CustomResourceDefinition: {"spec", "conversion", "webhook", "clientConfig", "caBundle"},
	APIService:               {"spec", "caBundle"},
}

func objectOf(t Target) objectRef {
	return objectRef{kind: t.Kind, name: t.Name, resource: targetResources[t.Kind]}
}

// ReadTarget returns the caBundles of a target. The result also has the resourceVersion and the entries that this field
// manager owns, which WriteTarget needs.
func (k *Client) ReadTarget(ctx context.Context, t Target) (TargetState, error) {
	p := objectOf(t)
	ctx, cancel := k.request(ctx)
	defer cancel()
	object, err := k.on(p).Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return TargetState{}, fmt.Errorf("%s %w", p, ErrNoTarget)
	}
	if err != nil {
		return TargetState{}, k.explain(err, "get", p)
	}
	if owner := object.GetAnnotations()[t.OwnerAnnotation]; t.OwnerAnnotation != "" && owner != "" && owner != t.Owner {
		return TargetState{}, fmt.Errorf("%s %w: its annotation %s is %q, and this installation's is %q", p, ErrOtherOwner, t.OwnerAnnotation, owner, t.Owner)
	}
	state := TargetState{Version: object.GetResourceVersion(), uid: string(object.GetUID()), Written: k.writtenAt(object)}
	if bundlePaths[t.Kind] != nil {
		state.Entries, err = singleEntry(object, t)
	} else {
		err = k.webhookEntries(object, t, &state)
	}
	if err != nil {
		return TargetState{}, fmt.Errorf("%s: %w", p, err)
	}
	return state, nil
}

// singleEntry reads the caBundle of a target whose kind has a single one.
func singleEntry(object *unstructured.Unstructured, t Target) ([]Entry, error) {
	if err := checkTakesBundle(object, t.Kind); err != nil {
		return nil, err
	}
	bundle, err := bundleAt(object.Object, bundlePaths[t.Kind]...)
	at := bundlePaths[t.Kind]
	client, _, _ := unstructured.NestedMap(object.Object, at[:len(at)-1]...)
	return []Entry{{Host: hostOf(client), Bundle: bundle}}, err
}

// checkTakesBundle returns an error for an object whose caBundle the API server would reject.
func checkTakesBundle(object *unstructured.Unstructured, kind string) error {
	switch kind {
	case CustomResourceDefinition:
		strategy, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "strategy")
		if strategy != "Webhook" {
			return fmt.Errorf("%w: it has no conversion webhook: spec.conversion.strategy is %q, not %q", ErrNoBundle, strategy, "Webhook")
		}
	case APIService:
		if service, _, _ := unstructured.NestedMap(object.Object, "spec", "service"); service == nil {
			return fmt.Errorf("%w: the API server serves it itself: it has no spec.service", ErrNoBundle)
		}
		if skip, _, _ := unstructured.NestedBool(object.Object, "spec", "insecureSkipTLSVerify"); skip {
			return errors.New("spec.insecureSkipTLSVerify is true, which excludes a caBundle: remove it")
		}
	}
	return nil
}

// webhookEntries sets Entries of the state to the caBundles of the selected webhooks, and applied to the webhooks to
// apply. The latter include other webhooks whose caBundle this field manager has applied, because an apply without them
// would remove that caBundle. webhookEntries keeps the order of the list: the order of an apply becomes the order in
// which the API server calls the webhooks.
func (k *Client) webhookEntries(object *unstructured.Unstructured, t Target, state *TargetState) error {
	list, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return err
	}
	owned := k.ownedWebhooks(object)
	var names []string
	for _, item := range list {
		webhook, _ := item.(map[string]any)
		name, _, _ := unstructured.NestedString(webhook, "name")
		bundle, err := bundleAt(webhook, "clientConfig", "caBundle")
		if err != nil {
			return fmt.Errorf("webhook %s: %w", name, err)
		}
		names = append(names, name)
		client, _, _ := unstructured.NestedMap(webhook, "clientConfig")
		entry := Entry{Name: name, Host: hostOf(client), Bundle: bundle}
		selected := len(t.Webhooks) == 0 || slices.Contains(t.Webhooks, name)
		if selected {
			state.Entries = append(state.Entries, entry)
		}
		if selected || owned[name] {
			state.applied = append(state.applied, entry)
		}
	}
	for _, name := range t.Webhooks {
		if !slices.Contains(names, name) {
			state.Missing = append(state.Missing, name)
		}
	}
	return nil
}

// hostOf returns the name that the API server verifies for a client configuration, or for the spec
// of an APIService.
func hostOf(client map[string]any) string {
	if raw, _, _ := unstructured.NestedString(client, "url"); raw != "" {
		if u, err := url.Parse(raw); err == nil {
			return u.Hostname()
		}
	}
	name, _, _ := unstructured.NestedString(client, "service", "name")
	namespace, _, _ := unstructured.NestedString(client, "service", "namespace")
	if name == "" || namespace == "" {
		return ""
	}
	return name + "." + namespace + ".svc"
}

func bundleAt(object map[string]any, path ...string) ([]byte, error) {
	text, _, err := unstructured.NestedString(object, path...)
	if err != nil {
		return nil, err
	}
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(path, "."), err)
	}
	return bundle, nil
}

// WriteTarget applies only the caBundles. The apply has the resourceVersion of the state, so it
// fails if the object has changed. It also has the uid of the state, so it does not create an
// object.
func (k *Client) WriteTarget(ctx context.Context, t Target, state TargetState, bundle []byte) error {
	if len(state.Entries) == 0 {
		return nil
	}
	p := objectOf(t)
	ctx, cancel := k.request(ctx)
	defer cancel()
	_, err := k.on(p).Apply(ctx, t.Name, applyConfiguration(t, p, state, bundle), metav1.ApplyOptions{FieldManager: k.fieldManager, Force: true})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", p, ErrConflict)
	}
	if err != nil {
		return k.explain(err, "patch", p)
	}
	return nil
}

// applyConfiguration returns an object with only the caBundles, for a server-side apply.
func applyConfiguration(t Target, p objectRef, state TargetState, bundle []byte) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(p.resource.GroupVersion().String())
	object.SetKind(p.kind)
	object.SetName(t.Name)
	if path := bundlePaths[t.Kind]; path != nil {
		_ = unstructured.SetNestedField(object.Object, base64.StdEncoding.EncodeToString(bundle), path...) // cannot fail in a new object
	} else {
		var webhooks []any
		for _, e := range state.applied {
			if slices.ContainsFunc(state.Entries, func(o Entry) bool { return o.Name == e.Name }) {
				e.Bundle = bundle
			}
			webhooks = append(webhooks, map[string]any{
				"name":         e.Name,
				"clientConfig": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(e.Bundle)},
			})
		}
		object.Object["webhooks"] = webhooks
	}
	_ = unstructured.SetNestedField(object.Object, state.Version, "metadata", "resourceVersion")
	_ = unstructured.SetNestedField(object.Object, state.uid, "metadata", "uid")
	return object
}
