// SPDX-License-Identifier: Apache-2.0

// Package realserver sends requests to a real API server. It registers webhook configurations there, and observes the
// webhook calls through a proxy.
package realserver

import (
	"context"
	"errors"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
)

// A Server is an API server with the objects that one engine created on it.
type Server struct {
	ID          string // of the engine
	API         *API
	Proxy       *proxy
	cleaner     *cleaner
	Namespaces  *namespaces
	definitions *definitions
	registrar   *registrar
	discovery   *discovery
	Foreign     []string // webhooks of the API server that belong to no engine
}

// NewServer starts the proxy, which runs until Close. It does not contact the API server.
func NewServer(config *rest.Config, userAgent, id string, declared map[string]map[string]string) (*Server, error) {
	client, err := NewAPI(config, userAgent)
	if err != nil {
		return nil, err
	}
	p, err := newProxy(client)
	if err != nil {
		return nil, err
	}
	c := &cleaner{api: client}
	return &Server{
		ID: id, API: client, Proxy: p, cleaner: c,
		Namespaces:  &namespaces{engineID: id, api: client, cleaner: c, declared: declared},
		definitions: &definitions{engineID: id, api: client, cleaner: c},
		registrar:   &registrar{engineID: id, api: client, proxy: p},
		discovery:   &discovery{api: client},
	}, nil
}

// A Setup has the objects that an engine creates on the API server before the first request.
type Setup struct {
	Mutating   []*admissionregistrationv1.MutatingWebhookConfiguration
	Validating []*admissionregistrationv1.ValidatingWebhookConfiguration
	Handlers   map[string]http.Handler
	CRDs       []*apiextensionsv1.CustomResourceDefinition
}

// Open deletes the leftovers of engines that were not closed, and creates the objects of o. It waits until the API
// server calls the webhooks.
func (s *Server) Open(ctx context.Context, o Setup) (err error) {
	if s.Foreign, err = removeStale(ctx, s.API, s.cleaner); err != nil {
		return err
	}
	if err := s.registrar.register(ctx, o.Mutating, o.Validating, o.Handlers); err != nil {
		return err
	}
	if err := s.definitions.install(ctx, o.CRDs); err != nil {
		return err
	}
	if err := s.Namespaces.createDeclared(ctx); err != nil {
		return err
	}
	return s.registrar.awaitEnforced(ctx)
}

// Close deletes everything that the engine created, and stops the proxy.
func (s *Server) Close(ctx context.Context) error {
	err := errors.Join(
		s.Namespaces.removeAll(ctx),
		s.definitions.removeAll(ctx),
		removeConfigurations(ctx, s.API, s.ID), // last: other engines find this one by its configurations
		s.Proxy.Close(),
	)
	s.API.Close()
	return err
}
