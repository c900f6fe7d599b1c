// SPDX-License-Identifier: Apache-2.0

// Package unobserved marks hooks whose calls the observers of a server must ignore.
package unobserved

import (
	"context"
	"net/http"
)

// A Marker is an observer that does nothing. A server does not add its own observers to a hook that
// has a Marker among its observers. Hook and Observation are the types of package webhook, which
// this package cannot import.
type Marker[Hook, Observation any] struct{}

// Begin observes nothing.
func (Marker[Hook, Observation]) Begin(ctx context.Context, _ *Hook, _ *http.Request) (context.Context, func(*Observation)) {
	return ctx, nil
}

// HidesFromServer does nothing. Package webhook recognizes a Marker by this method.
func (Marker[Hook, Observation]) HidesFromServer() {}
