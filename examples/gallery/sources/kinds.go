// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	// rediscoverEvery is the time between two discoveries, as in the API server for its own admission controllers.
	rediscoverEvery = 30 * time.Second
	// retryEvery is the time between two discoveries until the first one succeeds.
	retryEvery = time.Second
	// discoveryTimeout limits each request of a discovery.
	discoveryTimeout = 10 * time.Second
)

// Kinds maps kinds to the resources that the API server serves. It discovers them in the background, so that no
// admission request waits for it. If a discovery fails, Kinds keeps the last successful result.
type Kinds struct {
	client discovery.DiscoveryInterface
	last   atomic.Pointer[discovered] // nil before the first discovery
}

type discovered struct {
	mapper meta.RESTMapper
	err    error // set if no discovery has succeeded
}

// Kinds returns a mapper of the kinds that the API server serves. It needs no permission, because every user may
// discover them. The program is ready only when the kinds are known.
func (s *Sources) Kinds() (*Kinds, error) {
	config := rest.CopyConfig(s.deps.Config)
	config.Timeout = discoveryTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	k := &Kinds{client: client}
	s.deps.Run(k)
	s.deps.ReadyIf("the API server's kinds", k.known)
	return k, nil
}

// Start discovers the kinds at once, then every second until they are known, and then every 30 s. It returns when ctx
// ends.
func (k *Kinds) Start(ctx context.Context) error {
	discover := func(untilKnown bool) wait.ConditionWithContextFunc {
		return func(context.Context) (bool, error) {
			k.discover()
			return untilKnown && k.known(), nil
		}
	}
	_ = wait.PollUntilContextCancel(ctx, retryEvery, true, discover(true)) // both calls fail only when ctx ends
	_ = wait.PollUntilContextCancel(ctx, rediscoverEvery, false, discover(false))
	return nil
}

// known reports whether a discovery has succeeded.
func (k *Kinds) known() bool {
	last := k.last.Load()
	return last != nil && last.mapper != nil
}

func (k *Kinds) discover() {
	groups, err := restmapper.GetAPIGroupResources(k.client)
	switch {
	case err == nil:
		k.last.Store(&discovered{mapper: restmapper.NewDiscoveryRESTMapper(groups)})
	case !k.known():
		k.last.Store(&discovered{err: err})
	}
}

// RESTMappings returns the resources of a kind. It returns an error for which meta.IsNoMatchError is true if the API
// server does not serve the kind. Any other error means that no discovery has succeeded yet; it has no API status.
func (k *Kinds) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	last := k.last.Load()
	switch {
	case last == nil:
		return nil, errors.New("the API server's kinds are not discovered yet")
	case last.mapper == nil:
		return nil, fmt.Errorf("the kinds of the API server cannot be discovered: %s", last.err.Error())
	}
	return last.mapper.RESTMappings(kind, versions...)
}
