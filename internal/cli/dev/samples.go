// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

// samples holds the objects of --apply. first has the CustomResourceDefinitions and namespaces, and others has the
// rest.
type samples struct {
	first, others []*objects.Object
	mapper        *restmapper.DeferredDiscoveryRESTMapper
}

func readSamples(ctx context.Context, paths []string, s *screen.Screen) (*samples, error) {
	all, err := objects.Read(ctx, paths, s.In, s.Note)
	if err != nil {
		return nil, err
	}
	sets, err := objects.Sort(all)
	if err != nil {
		return nil, problem.New("%w", err)
	}
	list := &samples{others: sets.Others}
	for _, c := range sets.CRDs {
		list.first = append(list.first, c.Object)
	}
	for _, n := range sets.Namespaces {
		list.first = append(list.first, n.Object)
	}
	if n := len(sets.Mutating) + len(sets.Validating); n > 0 {
		s.Note("skipped %d webhook configurations of --apply: dev registers the hooks itself", n)
	}
	return list, nil
}

// applyFirst applies CustomResourceDefinitions and namespaces, and waits until the custom resources are served.
func (l *samples) applyFirst(ctx context.Context, r *registry) error {
	if len(l.first)+len(l.others) == 0 {
		return nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(r.config)
	if err != nil {
		return err
	}
	l.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	for _, o := range l.first {
		if err := l.apply(ctx, r, o); err != nil {
			return err
		}
	}
	for _, o := range l.first {
		if o.GVK.Kind == "CustomResourceDefinition" {
			if err := l.awaitServed(ctx, r, o); err != nil {
				return err
			}
		}
	}
	l.mapper.Reset()
	return nil
}

// applyOthers applies the objects of --apply that applyFirst has left out. The hooks must be registered before.
// applyOthers prints which objects were not applied.
func (l *samples) applyOthers(ctx context.Context, d *session) error {
	for _, o := range l.others {
		err := l.apply(ctx, d.records, o)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			d.out.notApplied(o.Where(), deniedBy(err, d.names()), err)
		}
	}
	return nil
}

// deniedBy returns the name of the webhook that denied a request, or "".
func deniedBy(err error, webhooks []string) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	for _, name := range webhooks {
		if strings.HasPrefix(status.Status().Message, fmt.Sprintf("admission webhook %q denied the request", name)) {
			return name
		}
	}
	return ""
}

func (l *samples) apply(ctx context.Context, r *registry, o *objects.Object) error {
	u, err := o.Unstructured()
	if err != nil {
		return problem.New("%w", err)
	}
	mapping, err := l.mapper.RESTMapping(o.GVK.GroupKind(), o.GVK.Version)
	if meta.IsNoMatchError(err) {
		return problem.New("%s: the API server does not know the kind %s of %s", o.Where(), o.GVK.Kind, o.GVK.GroupVersion())
	}
	if err != nil {
		return cluster.Explain(r.config, err)
	}
	resource := r.dynamic.Resource(mapping.Resource)
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if namespace = u.GetNamespace(); namespace == "" {
			namespace = metav1.NamespaceDefault
		}
	}
	if u.GetName() == "" { // the object has generateName
		_, err = resource.Namespace(namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: manager})
	} else {
		_, err = resource.Namespace(namespace).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: manager, Force: true})
	}
	if err == nil {
		return nil
	}
	if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		err = cluster.Explain(r.config, err)
	}
	return problem.New("%s: %w", o.Where(), err)
}

// awaitServed waits until the API server serves a custom resource.
func (l *samples) awaitServed(ctx context.Context, r *registry, o *objects.Object) error {
	definitions := schema.GroupVersionResource{Group: o.GVK.Group, Version: o.GVK.Version, Resource: "customresourcedefinitions"}
	ctx, cancel := context.WithTimeoutCause(ctx, enforceTimeout, problem.New("%s: the API server did not start to serve the custom resource within %s", o.Where(), enforceTimeout))
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if u, err := r.dynamic.Resource(definitions).Get(ctx, o.Name, metav1.GetOptions{}); err == nil && established(u) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

func established(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}
