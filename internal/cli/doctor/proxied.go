// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/doctor"
)

// proxied asks the API server to send a GET of / to each Service. This shows whether the API server reaches it.
func (r *reader) proxied(ctx context.Context) {
	client, err := rest.HTTPClientFor(r.config)
	if err != nil {
		return // other clients of this configuration work
	}
	var lock sync.Mutex
	var group errgroup.Group
	group.SetLimit(maxConnections)
	tried := map[doctor.Backend]bool{}
	for _, t := range r.s.Targets {
		b := t.Backend
		service := r.s.Services[b.Service]
		if tried[b] || !b.IsService() || b.IsAPIServer() || service == nil || service.Spec.Type == corev1.ServiceTypeExternalName || !r.s.IsPlaced(b) {
			continue
		}
		tried[b] = true
		group.Go(func() error {
			r.step("calling %s through the API server", b.String())
			p, err := r.proxy(ctx, client, b)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				r.gap("get", schema.GroupResource{Resource: "services/proxy"}, b.Service.Namespace, err)
			} else {
				r.s.Proxied[b] = p
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
}

// proxy sends the GET. It returns an error if the API server does not try to connect.
func (r *reader) proxy(ctx context.Context, client *http.Client, b doctor.Backend) (doctor.Proxied, error) {
	timeout := 2 * r.timeout // connections from here fail sooner
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	url := fmt.Sprintf("%s/api/v1/namespaces/%s/services/https:%s:%d/proxy/", strings.TrimSuffix(r.config.Host, "/"), b.Service.Namespace, b.Service.Name, b.Port)
	request, err := http.NewRequestWithContext(within, http.MethodGet, url, http.NoBody)
	if err != nil {
		return doctor.Proxied{}, err
	}
	answer, err := client.Do(request)
	switch {
	case ctx.Err() != nil:
		return doctor.Proxied{}, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return doctor.Proxied{Problem: doctor.Silent, Error: fmt.Sprintf("no answer within %s", timeout.Round(time.Second))}, nil
	case err != nil:
		return doctor.Proxied{}, err
	}
	defer func() { _ = answer.Body.Close() }() // nothing was written
	const most = 64 << 10
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return doctor.Proxied{}, err
	}
	return proxiedOf(answer.StatusCode, body)
}

// dialing is the start of the API server's message if it cannot connect (k8s.io/apimachinery pkg/util/proxy/transport.go,
// RoundTrip). Nothing else distinguishes this error.
const dialing = "error trying to reach service: "

// proxiedOf tells an answer of the API server from an answer of the webhook. It returns an error if the API server did
// not try to connect: the user lacks the permission, or the Service has no object Endpoints, which only the proxy needs.
func proxiedOf(code int, body []byte) (doctor.Proxied, error) {
	var s metav1.Status
	if code < 400 || json.Unmarshal(body, &s) != nil || s.Kind != "Status" {
		return doctor.Proxied{}, nil
	}
	if cause, failed := strings.CutPrefix(s.Message, dialing); failed && !isConnected(cause) {
		return doctor.Proxied{Problem: problemIn(cause), Error: cause}, nil
	}
	noEndpoints := s.Reason == metav1.StatusReasonNotFound && s.Details != nil && s.Details.Kind == "services" ||
		s.Reason == metav1.StatusReasonServiceUnavailable && strings.HasPrefix(s.Message, "no endpoints available for service")
	if noEndpoints || s.Reason == metav1.StatusReasonForbidden || s.Reason == metav1.StatusReasonUnauthorized {
		return doctor.Proxied{}, &apierrors.StatusError{ErrStatus: s}
	}
	return doctor.Proxied{}, nil
}

// isConnected reports whether an error can only come after the connection was made: TLS and HTTP begin then. A server
// that wants a client certificate answers with "remote error: tls: certificate required".
func isConnected(cause string) bool {
	return strings.Contains(cause, "tls: ") || strings.Contains(cause, "HTTP response") || strings.HasSuffix(cause, "EOF")
}

func problemIn(cause string) doctor.Problem {
	switch {
	case strings.Contains(cause, "connection refused"):
		return doctor.Refused
	case strings.Contains(cause, "i/o timeout"), strings.Contains(cause, "deadline exceeded"):
		return doctor.Silent
	}
	return doctor.Broken
}
