// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/problem"
)

const (
	manager    = "admitkit-dev"
	canaryPath = "canary/"
	// enforceTimeout bounds how long the API server takes to enforce a stored registration.
	enforceTimeout = 30 * time.Second
	// removalTimeout bounds the removal of the registrations.
	removalTimeout = 15 * time.Second
)

// A registry applies and removes the webhook configurations of dev in a cluster.
type registry struct {
	adaptation
	config  *rest.Config
	dynamic dynamic.Interface
	applied map[string]string // stored objects as JSON, by resource/name; "" if the state is unknown
}

func newRegistry(config *rest.Config, f adaptation) (*registry, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "admitkit"
	config.WarningHandler = rest.NoWarnings{} // dev prints the warnings of the hooks with their calls
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, problem.New("cannot use the kubeconfig: %w", err)
	}
	return &registry{adaptation: f, config: config, dynamic: client, applied: map[string]string{}}, nil
}

func resourceOf(name string) schema.GroupVersionResource {
	return admissionregistrationv1.SchemeGroupVersion.WithResource(name)
}

// apply stores the configurations, and waits until the API server enforces them. It deletes the configurations of an
// earlier call that are missing in the argument all. It reports whether anything changed.
func (r *registry) apply(ctx context.Context, all []configuration) (changed bool, err error) {
	wanted := map[string]string{}
	for _, c := range all {
		key := c.resource() + "/" + c.name()
		object, text, err := encode(&c)
		if err != nil {
			return changed, err
		}
		wanted[key] = text
		if r.applied[key] == text {
			continue
		}
		changed = true
		r.applied[key] = "" // after an error, the object may exist or not
		if err := r.put(ctx, c.resource(), object); err != nil {
			return true, err
		}
		r.applied[key] = text
	}
	for key := range r.applied {
		if _, there := wanted[key]; there {
			continue
		}
		changed = true
		if err := r.deleteKey(ctx, key); err != nil {
			return true, err
		}
	}
	if changed {
		err = r.settle(ctx)
	}
	return changed, err
}

func encode(c *configuration) (*unstructured.Unstructured, string, error) {
	object, kind := runtime.Object(c.validating), "ValidatingWebhookConfiguration"
	if c.mutating != nil {
		object, kind = c.mutating, "MutatingWebhookConfiguration"
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, "", err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp") // older libraries write null
	text, err := json.Marshal(u)
	return u, string(text), err
}

func (r *registry) put(ctx context.Context, resource string, object *unstructured.Unstructured) error {
	_, err := r.dynamic.Resource(resourceOf(resource)).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return problem.New("the API server rejects the registration: %w", err)
	}
	return cluster.Explain(r.config, err)
}

func (r *registry) deleteKey(ctx context.Context, key string) error {
	resource, name, _ := strings.Cut(key, "/")
	err := r.dynamic.Resource(resourceOf(resource)).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return cluster.Explain(r.config, err)
	}
	delete(r.applied, key)
	return nil
}

// remove deletes everything that apply stored.
func (r *registry) remove(ctx context.Context) error {
	var errs []error
	for key := range r.applied {
		errs = append(errs, r.deleteKey(ctx, key))
	}
	return errors.Join(errs...)
}

// removeOwned deletes all configuration objects whose label has the value r.owner, and returns their number.
func (r *registry) removeOwned(ctx context.Context) (n int, err error) {
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		list, err := r.dynamic.Resource(resourceOf(resource)).List(ctx, metav1.ListOptions{LabelSelector: devLabel + "=" + r.owner})
		if err != nil {
			return n, cluster.Explain(r.config, err)
		}
		for _, item := range list.Items {
			if err := r.deleteKey(ctx, resource+"/"+item.GetName()); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// settle waits until the API server enforces the stored configurations. It stores a canary configuration and waits
// until the API server calls the canary. The API server receives the objects of one kind in order, so it then has the
// earlier configurations as well. The canary matches only the requests of triggerCanaries, which the API server never
// stores.
func (r *registry) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, enforceTimeout)
	defer cancel()
	token := randomText()
	for _, sort := range []string{"mutating", "validating"} {
		object, _, err := encode(r.canary(sort, token))
		if err != nil {
			return err
		}
		resource := sort + "webhookconfigurations"
		r.applied[resource+"/"+object.GetName()] = ""
		if err := r.put(ctx, resource, object); err != nil {
			return err
		}
	}
	err := r.awaitCanaries(ctx, token)
	for _, sort := range []string{"mutating", "validating"} {
		// The canary must be deleted even if ctx has ended. If that fails, remove tries again.
		removal, cancelRemoval := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
		if removed := r.deleteKey(removal, sort+"webhookconfigurations/"+r.canaryName()); err == nil {
			err = removed
		}
		cancelRemoval()
	}
	return err
}

func (r *registry) awaitCanaries(ctx context.Context, token string) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	last := errors.New("no call has arrived")
	for {
		if err := r.triggerCanaries(ctx, token); err != nil && ctx.Err() == nil {
			last = err
		}
		if r.proxy.saw("mutating/"+token) && r.proxy.saw("validating/"+token) {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				failed := problem.New("the API server does not call %s: %w", r.proxy.url, last)
				if r.careful {
					return failed.Hint("--advertise HOST:PORT, the address of this machine for the cluster")
				}
				return failed
			}
			return ctx.Err()
		case <-again.C:
		}
	}
}

// triggerCanaries sends a request for which the API server calls the canaries: a SelfSubjectReview, which every user
// may create and which is never stored.
func (r *registry) triggerCanaries(ctx context.Context, token string) error {
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1",
		"kind":       "SelfSubjectReview",
		"metadata":   map[string]any{"labels": map[string]any{devLabel: token}},
	}}
	reviews := schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	_, err := r.dynamic.Resource(reviews).Create(ctx, review, metav1.CreateOptions{})
	return err
}

func (r *registry) canaryName() string { return r.prefix + "admitkit-canary" }

// canary returns the configuration of a canary, for settle.
func (r *registry) canary(sort, token string) *configuration {
	const name = "canary.dev.admitkit.dev"
	fail, none, timeout := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, int32(2)
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"authentication.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"selfsubjectreviews"}},
	}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{devLabel: token}}
	meta := metav1.ObjectMeta{Name: r.canaryName(), Labels: map[string]string{devLabel: r.owner}}
	client := r.address(canaryPath + sort + "/" + token)
	if sort == "mutating" {
		return &configuration{mutating: &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: name, ClientConfig: client, Rules: rules, FailurePolicy: &fail, ObjectSelector: selector,
			SideEffects: &none, TimeoutSeconds: &timeout, AdmissionReviewVersions: []string{"v1"},
		}}}}
	}
	return &configuration{validating: &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: name, ClientConfig: client, Rules: rules, FailurePolicy: &fail, ObjectSelector: selector,
		SideEffects: &none, TimeoutSeconds: &timeout, AdmissionReviewVersions: []string{"v1"},
	}}}}
}

// answerCanary allows a call of a canary and records it.
func (p *proxy) answerCanary(w http.ResponseWriter, canary string, review *admissionv1.AdmissionReview) {
	p.mu.Lock()
	p.canaries[canary] = true
	p.mu.Unlock()
	answer := admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the API server may have disconnected
}

func randomText() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
