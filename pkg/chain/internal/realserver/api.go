// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// EngineKey is the key of the label or annotation on every object that an engine creates. The value is the id of the
// engine.
const EngineKey = "chain.admitkit/engine"

// The paths of the collections in which an engine creates objects.
const (
	MutatingPath   = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	ValidatingPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	NamespacesPath = "/api/v1/namespaces"
	CRDsPath       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// An API is a client of the API server that sends requests unchanged, byte for byte. The clients of client-go would
// decode and encode objects, and hide response headers.
type API struct {
	base   *url.URL
	client *http.Client
}

// NewAPI returns a client of the API server. The API server uses userAgent as the field manager of requests that do
// not name one.
func NewAPI(config *rest.Config, userAgent string) (*API, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API server's address: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Timeout = 0
	config.UserAgent = userAgent
	config.WarningHandler = rest.NoWarnings{}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of the API server: %w", err)
	}
	return &API{base: base, client: client}, nil
}

// Close closes idle connections.
func (a *API) Close() { utilnet.CloseIdleConnectionsFor(a.client.Transport) }

// A Message is one request to the API server.
type Message struct {
	Method string
	Path   string
	Query  url.Values
	Body   []byte
	// contentType is JSON if empty.
	contentType string
	// User is impersonated unless it is nil. id is the audit ID.
	User *authenticationv1.UserInfo
	id   string
}

// A Reply is the response of the API server.
type Reply struct {
	Code     int
	Body     []byte
	Warnings []string
}

// Send sends a request and returns the reply. It returns an error only if there is no reply.
func (a *API) Send(ctx context.Context, m Message) (*Reply, error) {
	req, err := a.request(ctx, m)
	if err != nil {
		return nil, err
	}
	client := a.client
	if m.User != nil {
		client = &http.Client{Transport: transport.NewImpersonatingRoundTripper(impersonation(*m.User), a.client.Transport)}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	r := &Reply{Code: resp.StatusCode}
	if r.Code != http.StatusSwitchingProtocols {
		if r.Body, err = io.ReadAll(resp.Body); err != nil {
			return nil, fmt.Errorf("%s %s: %w", m.Method, m.Path, err)
		}
	}
	headers, _ := utilnet.ParseWarningHeaders(resp.Header["Warning"]) // malformed warnings are dropped
	for _, h := range headers {
		r.Warnings = append(r.Warnings, h.Text)
	}
	return r, nil
}

func (a *API) request(ctx context.Context, m Message) (*http.Request, error) {
	u := a.base.JoinPath(strings.Split(m.Path, "/")...)
	u.RawQuery = m.Query.Encode()
	req, err := http.NewRequestWithContext(ctx, m.Method, u.String(), bytes.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if m.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if m.contentType != "" {
		req.Header.Set("Content-Type", m.contentType)
	}
	if m.id != "" {
		req.Header.Set("Audit-ID", m.id)
	}
	return req, nil
}

func impersonation(user authenticationv1.UserInfo) transport.ImpersonationConfig {
	c := transport.ImpersonationConfig{UserName: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string][]string{}}
	for key, values := range user.Extra {
		c.Extra[key] = values
	}
	return c
}

// Status returns the status of a failed request, or nil if the request succeeded.
func (r *Reply) Status() *metav1.Status {
	if r.Code < http.StatusBadRequest {
		return nil
	}
	var status metav1.Status
	if json.Unmarshal(r.Body, &status) == nil && status.Kind == "Status" {
		return &status
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(r.Code), //nolint:gosec // HTTP codes are small
		Message: strings.TrimSpace(string(r.Body)),
	}
}

// Do sends a request and decodes the response into out, unless out is nil. A failure status is returned as an
// [apierrors.StatusError].
func (a *API) Do(ctx context.Context, m Message, out any) error {
	r, err := a.Send(ctx, m)
	if err != nil {
		return err
	}
	if status := r.Status(); status != nil {
		return &apierrors.StatusError{ErrStatus: *status}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(r.Body, out); err != nil {
		return fmt.Errorf("%s %s: cannot decode the response: %w", m.Method, m.Path, err)
	}
	return nil
}

// Get reads the object at a path into out.
func (a *API) Get(ctx context.Context, path string, out any) error {
	return a.Do(ctx, Message{Method: http.MethodGet, Path: path}, out)
}

// Write sends an object to a path. It then replaces the content of the object with the object in the response.
func (a *API) Write(ctx context.Context, method, path string, in any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return a.Do(ctx, Message{Method: method, Path: path, Body: body}, in)
}

// Remove deletes the object at a path. It returns no error if there is none.
func (a *API) Remove(ctx context.Context, path string) error {
	err := a.Do(ctx, Message{Method: http.MethodDelete, Path: path}, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
