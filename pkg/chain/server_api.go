// SPDX-License-Identifier: Apache-2.0

package chain

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

// An api sends requests unchanged, byte for byte. The clients of client-go would decode and encode objects and hide
// response headers.
type api struct {
	base   *url.URL
	client *http.Client
}

func newAPI(config *rest.Config) (*api, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the API server's address: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Timeout = 0
	config.UserAgent = defaultManager // the field manager of requests that name none
	config.WarningHandler = rest.NoWarnings{}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("a client of the API server: %w", err)
	}
	return &api{base: base, client: client}, nil
}

func (a *api) close() { utilnet.CloseIdleConnectionsFor(a.client.Transport) }

// A message is one request to the API server.
type message struct {
	method string
	path   string
	query  url.Values
	body   []byte
	// contentType is JSON if empty.
	contentType string
	// user is impersonated, unless nil; id is the audit ID.
	user *authenticationv1.UserInfo
	id   string
}

// A reply is the response of the API server.
type reply struct {
	code     int
	body     []byte
	warnings []string
}

// send returns an error only if there is no reply.
func (a *api) send(ctx context.Context, m message) (*reply, error) {
	req, err := a.request(ctx, m)
	if err != nil {
		return nil, err
	}
	client := a.client
	if m.user != nil {
		client = &http.Client{Transport: transport.NewImpersonatingRoundTripper(impersonation(*m.user), a.client.Transport)}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	r := &reply{code: resp.StatusCode}
	if r.code != http.StatusSwitchingProtocols {
		if r.body, err = io.ReadAll(resp.Body); err != nil {
			return nil, fmt.Errorf("%s %s: %w", m.method, m.path, err)
		}
	}
	headers, _ := utilnet.ParseWarningHeaders(resp.Header["Warning"]) // what cannot be read is no warning
	for _, h := range headers {
		r.warnings = append(r.warnings, h.Text)
	}
	return r, nil
}

func (a *api) request(ctx context.Context, m message) (*http.Request, error) {
	u := a.base.JoinPath(strings.Split(m.path, "/")...)
	u.RawQuery = m.query.Encode()
	req, err := http.NewRequestWithContext(ctx, m.method, u.String(), bytes.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if m.body != nil {
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

// status returns the failure that a reply tells of, or nil.
func (r *reply) status() *metav1.Status {
	if r.code < http.StatusBadRequest {
		return nil
	}
	var status metav1.Status
	if json.Unmarshal(r.body, &status) == nil && status.Kind == "Status" {
		return &status
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(r.code), //nolint:gosec // HTTP codes are small
		Message: strings.TrimSpace(string(r.body)),
	}
}

// do sends a request of the engine's own and decodes the answer into out, unless that is nil. A
// failure of the API server is an error that apierrors knows.
func (a *api) do(ctx context.Context, m message, out any) error {
	r, err := a.send(ctx, m)
	if err != nil {
		return err
	}
	if status := r.status(); status != nil {
		return &apierrors.StatusError{ErrStatus: *status}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(r.body, out); err != nil {
		return fmt.Errorf("%s %s: the answer is not understood: %w", m.method, m.path, err)
	}
	return nil
}

func (a *api) get(ctx context.Context, path string, out any) error {
	return a.do(ctx, message{method: http.MethodGet, path: path}, out)
}

// write sends in, and sets it to what the API server stored.
func (a *api) write(ctx context.Context, method, path string, in any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return a.do(ctx, message{method: method, path: path, body: body}, in)
}

// remove deletes what is at a path, if anything.
func (a *api) remove(ctx context.Context, path string) error {
	err := a.do(ctx, message{method: http.MethodDelete, path: path}, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
