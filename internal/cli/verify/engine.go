// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/problem"
)

// engine starts the API server that defaults and validates objects between two calls, and returns a function that stops
// it. With --in-process, or if this machine has no API server, engine returns a nil configuration. admitkit then
// defaults and validates the objects in process.
func (r *runner) engine(ctx context.Context) (*rest.Config, func(), error) {
	if r.InProcess {
		return nil, func() {}, nil
	}
	if dir, err := apiserver.Assets(ctx); err != nil {
		if r.Server {
			return nil, nil, err
		}
		r.note("objects are defaulted and validated in process, by the rules that admitkit implements; for all rules, build an API server: admitkit apiserver install")
		return nil, func() {}, nil
	} else if !r.Server {
		r.note("objects are defaulted and validated by a real API server, from %s; --in-process is about 7 times as fast", dir)
	}
	server, err := apiserver.Start(ctx, nil)
	if err != nil {
		return nil, nil, problem.Hint(err, "--in-process")
	}
	stop := func() {
		if err := server.Stop(); err != nil {
			r.screen.Note("cannot stop the API server: %s", err)
		}
	}
	return server.Config, stop, nil
}
