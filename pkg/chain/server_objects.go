// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// setByServer are the metadata that only the API server sets.
var setByServer = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// prepare makes what has to be on the API server before the request.
func (a *admissionRun) prepare(ctx context.Context) error {
	if a.ns != "" {
		if err := a.namespaces.need(ctx, a.ns); err != nil {
			return err
		}
	}
	if a.OldObject == nil {
		return nil
	}
	old, err := decodeDocument(a.OldObject)
	if err != nil {
		return err
	}
	if err := a.setUp(ctx, old); err != nil {
		return fmt.Errorf("the old object cannot be stored on the API server: %w", err)
	}
	if a.Operation == admissionv1.Update && a.object != nil && a.SubResource != "scale" {
		a.object = sameIdentity(a.object, old, a.stored)
	}
	return nil
}

// setUp stores the old object by the engine itself, which no webhook of it sees.
func (a *admissionRun) setUp(ctx context.Context, old document) error {
	unset := map[string]any{"name": a.name}
	if a.ns != "" {
		unset["namespace"] = a.ns
	}
	for _, key := range setByServer {
		unset[key] = nil
	}
	m := message{method: http.MethodPost, path: a.kind.path(a.ns, ""), body: old.withMeta(unset).encode()}
	if err := a.api.do(ctx, m, &a.stored); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s is there already, and not of this engine", a.place())
		}
		return err
	}
	if status := old["status"]; a.kind.hasStatus && !emptyValue(status) {
		withStatus := a.stored.withMeta(nil)
		withStatus["status"] = status
		m := message{method: http.MethodPut, path: a.place() + "/status", body: withStatus.encode()}
		a.stored = nil
		if err := a.api.do(ctx, m, &a.stored); err != nil {
			return fmt.Errorf("its status: %w", err)
		}
	}
	if old.meta("deletionTimestamp") != "" {
		if err := a.api.do(ctx, message{method: http.MethodDelete, path: a.place()}, nil); err != nil {
			return err
		}
		a.stored = nil
		if err := a.api.get(ctx, a.place(), &a.stored); err != nil {
			return fmt.Errorf("it is being deleted, but nothing holds it: %w", err)
		}
	}
	a.tellDifferences(old)
	return a.awaitCached(ctx)
}

// awaitCached waits until the API server's cache has the object as it was stored last: a request
// that begins with an older one is started over, and webhooks are called again.
func (a *admissionRun) awaitCached(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var cached document
		err := a.api.do(ctx, message{method: http.MethodGet, path: a.place(), query: url.Values{"resourceVersion": {"0"}}}, &cached)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return cached.meta("resourceVersion") == a.stored.meta("resourceVersion"), err
	})
}

// tellDifferences notes what of the old object is not stored as it was given.
func (a *admissionRun) tellDifferences(old document) {
	var paths []string
	for _, key := range setByServer {
		if v, ok := old.metadata()[key]; ok && !equalValue(v, a.stored.metadata()[key]) {
			paths = append(paths, "metadata."+key)
		}
	}
	for key, v := range old {
		if key != "metadata" && key != "apiVersion" && !contains(a.stored[key], v) {
			paths = append(paths, key)
		}
	}
	if len(paths) > 0 {
		slices.Sort(paths)
		a.limit(OldObjectDiffers, "The old object is not stored as given: the API server has other values at %s.", strings.Join(paths, ", "))
	}
}

// sameIdentity gives the object that is sent what the stored one was given in place of what the
// caller knows it by.
func sameIdentity(object, old, stored document) document {
	change := map[string]any{}
	for _, key := range setByServer {
		given, ok := object.metadata()[key]
		if key == "resourceVersion" && !ok || ok && equalValue(given, old.metadata()[key]) {
			change[key] = stored.metadata()[key]
		}
	}
	return object.withMeta(change)
}

// note remembers what the request may have stored.
func (a *admissionRun) note(r *reply) error {
	if a.Operation != admissionv1.Create || a.SubResource != "" || a.DryRun || r.status() != nil {
		return nil
	}
	var err error
	if a.stored, err = decodeDocument(r.body); err != nil {
		return fmt.Errorf("the API server's answer to a CREATE: %w", err)
	}
	a.name = a.stored.meta("name") // generated, or changed by a webhook
	return nil
}

// undo removes the object that the engine, or the request, stored.
func (a *admissionRun) undo(ctx context.Context) error {
	if a.stored == nil {
		return nil
	}
	if err := a.removeObject(ctx, a.kind, a.ns, a.stored); err != nil {
		return fmt.Errorf("%s cannot be removed again: %w", a.place(), err)
	}
	return nil
}

// removeObject deletes exactly this object, whatever holds it, and waits until it is gone.
func (s *serverEngine) removeObject(ctx context.Context, kind servedResource, namespace string, object document) error {
	path := kind.path(namespace, object.meta("name"))
	uid := object.meta("uid")
	body := encode(map[string]any{
		"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "propagationPolicy": metav1.DeletePropagationBackground,
		"preconditions": map[string]any{"uid": uid},
	})
	deleted := false
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if !deleted {
			err := s.api.do(ctx, message{method: http.MethodDelete, path: path, body: body}, nil)
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another by that name
				return true, nil
			} else if err != nil {
				return false, err
			}
			deleted = true
		}
		var left document
		if err := s.api.get(ctx, path, &left); apierrors.IsNotFound(err) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		if left.meta("uid") != uid {
			return true, nil
		}
		return false, s.release(ctx, path, left)
	})
}

// release takes away what keeps a deleted object.
func (s *serverEngine) release(ctx context.Context, path string, object document) error {
	var err error
	if finalizers, _ := object.metadata()["finalizers"].([]any); len(finalizers) > 0 {
		err = s.api.do(ctx, message{
			method: http.MethodPatch, path: path, contentType: "application/merge-patch+json",
			body: encode(map[string]any{"metadata": map[string]any{"finalizers": nil, "resourceVersion": object.meta("resourceVersion")}}),
		}, nil)
	} else if strings.HasPrefix(path, namespacesPath+"/") && strings.Count(path, "/") == strings.Count(namespacesPath, "/")+1 {
		err = s.finalize(ctx, path, object)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// keyedLocks are locks by name.
type keyedLocks struct {
	mu    sync.Mutex
	locks map[string]*keyedLock
}

type keyedLock struct {
	sync.RWMutex
	users int
}

// lock returns what unlocks.
func (k *keyedLocks) lock(key string, shared bool) func() {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyedLock{}
	}
	l := k.locks[key]
	if l == nil {
		l = &keyedLock{}
		k.locks[key] = l
	}
	l.users++
	k.mu.Unlock()
	unlock := l.RUnlock
	if shared {
		l.RLock()
	} else {
		l.Lock()
		unlock = l.Unlock
	}
	return func() {
		unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
	}
}
