// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/build"
)

// A localServer is an API server that dev has started.
type localServer struct {
	server              *apiserver.Server
	kubeconfig, version string
}

// tracing makes the API server send a trace id with each call of a webhook. dev needs the id to count the calls for one
// request. The API server samples no spans, so it sends none to the endpoint.
const tracing = `apiVersion: apiserver.config.k8s.io/v1
kind: TracingConfiguration
endpoint: 127.0.0.1:9
samplingRatePerMillion: 0
`

// startServer starts an API server and the proxy. It builds the API server first if this machine has none.
func startServer(ctx context.Context, d *session) (target, error) {
	if _, err := build.Find(""); err != nil {
		progress := d.s.Progress()
		note := func(format string, args ...any) {
			progress.Done()
			d.s.Note(format, args...)
		}
		_, err := build.Build(ctx, build.Options{Note: note, Step: progress.Step})
		progress.Done()
		if err != nil {
			return nil, err
		}
	}
	server, err := apiserver.Run(ctx, apiserver.Options{Flags: d.flags, Port: d.o.Port, Files: map[string][]byte{"tracing-config-file": []byte(tracing)}})
	if err != nil {
		return nil, err
	}
	l := &localServer{server: server}
	if err := l.prepare(ctx, d); err != nil {
		_ = l.server.Stop() // its error matters less than err
		return nil, err
	}
	return l, nil
}

func (l *localServer) prepare(ctx context.Context, d *session) (err error) {
	if l.kubeconfig, err = l.server.WriteFile("kubeconfig", l.server.Kubeconfig); err != nil {
		return err
	}
	if l.version, err = l.server.Version(ctx); err != nil {
		return err
	}
	secret := randomText()
	if d.proxy, err = newProxy("127.0.0.1:0", "127.0.0.1", secret, d.out.admission); err != nil {
		return err
	}
	f := adaptation{proxy: d.proxy, owner: "local"}
	if d.o.URL == "" { // configurations from files keep their names, which determine the order of calls
		f.prefix = "admitkit-dev-"
	}
	d.records, err = newRegistry(l.server.Config, f)
	return err
}

func (l *localServer) done() <-chan struct{} { return l.server.Done() }

func (l *localServer) err() error { return l.server.Err() }

func (l *localServer) close() error { return l.server.Stop() }
