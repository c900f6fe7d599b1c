// SPDX-License-Identifier: Apache-2.0

// Package uniqueingresshosts provides a hook that denies an Ingress with a host that an Ingress in another namespace
// already has. So no team can take over the traffic of another one. Several Ingresses of one namespace may share a
// host.
//
// The hook compares the hosts of the rules literally: a wildcard such as *.example.com is a host of its own, and a rule
// without a host is ignored. An Ingress may keep hosts that it had before the hook was installed.
//
// # What the hook cannot guarantee
//
// The hook reads the Ingresses from a cache, which lags slightly behind. If two Ingresses with the same host are
// created at the same time, each can be admitted, by one replica of the webhook or by two, because neither is in the
// cache yet. No validating webhook can prevent that: it decides before the object is stored. There are two remedies:
//
//   - Find duplicates later. A controller that watches Ingresses can use the same index, [Indexers]. If a host has
//     Ingresses in two namespaces, the controller reports the newer one. Most ingress controllers, such as
//     ingress-nginx, keep routing a host to the oldest Ingress.
//   - Reserve a host before it is used. The reservation is a cluster-scoped object with the host as its name. Only one
//     can be created, because the API server stores each name once. The hook then denies hosts that the namespace has
//     not reserved.
package uniqueingresshosts

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/admitkit/admitkit/examples/gallery/forbidden"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// byHost is the name of the index.
const byHost = "uniqueingresshosts.example.com/by-host"

// Indexers returns the index of Ingresses by host, which the informer of the hook needs.
func Indexers() cache.Indexers {
	return cache.Indexers{byHost: func(object any) ([]string, error) {
		ingress, ok := object.(*networkingv1.Ingress)
		if !ok {
			return nil, fmt.Errorf("the cache has a %T instead of an Ingress", object)
		}
		return hosts(ingress), nil
	}}
}

// Hook returns the hook that denies hosts of other namespaces. The cache must contain the Ingresses of all namespaces
// and have the index of [Indexers].
func Hook(ingresses cache.Indexer) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "uniqueingresshosts.example.com",
		Rules: webhook.Rules(webhook.OnWrite("networking.k8s.io", "v1", "ingresses")),
	}, func(_ context.Context, req *webhook.Request[networkingv1.Ingress]) error {
		old, err := req.OldObject()
		if err != nil {
			return err
		}
		for _, host := range hosts(req.Object) {
			if slices.Contains(hosts(old), host) {
				continue
			}
			if other, err := isElsewhere(ingresses, host, req.Namespace); err != nil {
				return err
			} else if other {
				return forbidden.Error(req.AdmissionRequest(), req.Object, fmt.Sprintf(
					"an Ingress in another namespace has the host %s: use another host, or ask a cluster administrator for this one", host))
			}
		}
		return nil
	})
}

// isElsewhere reports whether an Ingress in another namespace has the host.
func isElsewhere(ingresses cache.Indexer, host, namespace string) (bool, error) {
	found, err := ingresses.ByIndex(byHost, host)
	return slices.ContainsFunc(found, func(object any) bool { return object.(*networkingv1.Ingress).Namespace != namespace }), err
}

// hosts returns the hosts of the rules of an Ingress. A nil Ingress has none.
func hosts(ingress *networkingv1.Ingress) (all []string) {
	if ingress == nil {
		return nil
	}
	for _, rule := range ingress.Spec.Rules {
		if rule.Host != "" && !slices.Contains(all, rule.Host) {
			all = append(all, rule.Host)
		}
	}
	return all
}
