// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	webhookplugin "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/utils/ptr"
)

// A Hook is one webhook of a configuration, with its address. WebhookAccessor is nil for a conversion webhook.
type Hook struct {
	Configuration string
	Mutating      bool
	Index         int // among all mutating or all validating webhooks
	webhookplugin.WebhookAccessor
	endpoint
}

// An endpoint is the address of a webhook. The API server's code gets a unique placeholder host instead: the key.
// If it got the real host, it would share one client between webhooks with the same address. The transport could
// then not tell which webhook is called. The transport dials the real host and verifies its certificate.
type endpoint struct {
	handler http.Handler
	key     string
	host    string // host and port as in messages of the API server
	service *admissionregistrationv1.ServiceReference
}

func newEndpoint(c admissionregistrationv1.WebhookClientConfig, sort string, index int, handler http.Handler) endpoint {
	e := endpoint{handler: handler, key: fmt.Sprintf("%s-%d.admitkit.invalid", sort, index)}
	if s := c.Service; s != nil {
		e.service = s
		e.host = net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(*s.Port)))
		return e
	}
	u, err := url.Parse(*c.URL)
	if err != nil {
		return e // the URL was validated before
	}
	e.host = u.Host
	if ip := net.ParseIP(u.Hostname()); strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback() {
		// The API server uses HTTP/2 only with loopback hosts, so the key must be a loopback address, too.
		block := 200
		if sort == "validating" {
			block = 201
		}
		e.key = fmt.Sprintf("127.%d.%d.%d", block, index>>8&255, index&255)
	}
	return e
}

// clientConfig returns c with the key, the placeholder host, in place of the real host.
func (e endpoint) clientConfig(c admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.WebhookClientConfig {
	u := url.URL{Scheme: "https", Host: e.key}
	if e.service != nil {
		u.Path = ptr.Deref(e.service.Path, "")
	} else if own, err := url.Parse(*c.URL); err == nil {
		u.Path, u.RawPath = own.Path, own.RawPath
	}
	return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(u.String()), CABundle: c.CABundle}
}

// NewHooks returns the webhooks of the configurations. It replaces their clientConfigs with unique addresses, by which the
// transport finds the webhook.
func NewHooks(mutatingConfigurations []*admissionregistrationv1.MutatingWebhookConfiguration,
	validatingConfigurations []*admissionregistrationv1.ValidatingWebhookConfiguration, handlers map[string]http.Handler) (mutating, validating []*Hook) {
	for _, m := range mutatingConfigurations {
		for i := range m.Webhooks {
			w := &m.Webhooks[i]
			h := &Hook{Configuration: m.Name, Mutating: true, Index: len(mutating),
				endpoint: newEndpoint(w.ClientConfig, "mutating", len(mutating), handlers[w.Name])}
			h.WebhookAccessor = webhookplugin.NewMutatingWebhookAccessor(w.Name, m.Name, w)
			w.ClientConfig = h.clientConfig(w.ClientConfig)
			mutating = append(mutating, h)
		}
	}
	for _, v := range validatingConfigurations {
		for i := range v.Webhooks {
			w := &v.Webhooks[i]
			h := &Hook{Configuration: v.Name, Index: len(validating),
				endpoint: newEndpoint(w.ClientConfig, "validating", len(validating), handlers[w.Name])}
			h.WebhookAccessor = webhookplugin.NewValidatingWebhookAccessor(w.Name, v.Name, w)
			w.ClientConfig = h.clientConfig(w.ClientConfig)
			validating = append(validating, h)
		}
	}
	return mutating, validating
}

// RealHosts returns a replacer for messages. It replaces the placeholder host of each webhook with the real host.
func RealHosts(sorts ...[]*Hook) *strings.Replacer {
	hooks := slices.Concat(sorts...)
	// A key may be a prefix of another one, so the longest keys come first.
	slices.SortFunc(hooks, func(a, b *Hook) int { return cmp.Compare(len(b.key), len(a.key)) })
	var pairs []string
	for _, h := range hooks {
		pairs = append(pairs, h.key, h.host)
	}
	return strings.NewReplacer(pairs...)
}
