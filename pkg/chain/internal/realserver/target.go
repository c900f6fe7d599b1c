// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"net/http"
	"net/url"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// A Target is a registered webhook and its real address.
type Target struct {
	Configuration, Webhook string
	Mutating               bool
	Index                  int // among all mutating or all validating webhooks, in the order of the calls
	FailurePolicy          admissionregistrationv1.FailurePolicyType
	handler                http.Handler // handles the calls
	prefix                 string       // path prefix of the webhook at the proxy
	proxied, original      string       // scheme and host of the URLs at the proxy and of the webhook; proxied includes prefix
	host                   string       // the Host header that the API server would send to the webhook
}

// webhookAddress returns the URL at which the API server would call a webhook, and the Host header of the call.
func webhookAddress(c admissionregistrationv1.WebhookClientConfig) (*url.URL, string, error) {
	switch {
	case c.Service != nil:
		port := int32(443)
		if c.Service.Port != nil {
			port = *c.Service.Port
		}
		host := c.Service.Name + "." + c.Service.Namespace + ".svc"
		u := &url.URL{Scheme: "https", Host: host + ":" + strconv.Itoa(int(port))}
		if c.Service.Path != nil {
			u.Path = *c.Service.Path
		}
		return u, u.Host, nil
	case c.URL != nil:
		u, err := url.Parse(*c.URL)
		if err != nil {
			return nil, "", err
		}
		return u, u.Host, nil
	}
	u := &url.URL{Scheme: "https", Host: "handler.invalid"}
	return u, u.Host, nil
}
