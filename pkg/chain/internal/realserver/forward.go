// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// A forwarder calls webhooks at their addresses.
type forwarder struct {
	api        *API
	onShutdown func(func()) // registers a function to call when the proxy shuts down
}

// handler returns a handler that calls a webhook at its address, with the caBundle of its clientConfig.
func (f forwarder) handler(c admissionregistrationv1.WebhookClientConfig, to *url.URL) http.Handler {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression: true, ForceAttemptHTTP2: false,
	}
	if len(c.CABundle) > 0 {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(c.CABundle) // without a valid certificate each call fails, as in the API server
	}
	if c.Service != nil {
		transport.TLSClientConfig.ServerName = to.Hostname()
		transport.DialContext = f.serviceDialer(*c.Service, to.Port())
	} else {
		transport.Proxy = http.ProxyFromEnvironment
	}
	f.onShutdown(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
		},
		// The API server must see a broken connection, as it would without the proxy.
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { panic(err) },
	}
}

// serviceDialer returns a function that dials a Service at the address that the API server would use.
func (f forwarder) serviceDialer(ref admissionregistrationv1.ServiceReference, port string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var service corev1.Service
		if err := f.api.Get(ctx, NamespacesPath+"/"+ref.Namespace+"/services/"+ref.Name, &service); err != nil {
			return nil, err
		}
		host := service.Spec.ClusterIP
		if service.Spec.Type == corev1.ServiceTypeExternalName {
			host = service.Spec.ExternalName
		} else if host == "" || host == corev1.ClusterIPNone {
			return nil, fmt.Errorf("service %s/%s has no address", ref.Namespace, ref.Name)
		} else if n, err := strconv.Atoi(port); err != nil || !hasPort(service, n) {
			return nil, fmt.Errorf("service %s/%s has no port %s", ref.Namespace, ref.Name, port)
		}
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(host, port))
	}
}

func hasPort(service corev1.Service, number int) bool {
	for _, port := range service.Spec.Ports {
		if int(port.Port) == number {
			return true
		}
	}
	return false
}
