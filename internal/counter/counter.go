// SPDX-License-Identifier: Apache-2.0

// Package counter registers Prometheus counters that several instances of a type can share.
package counter

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register returns a counter with these labels. If the registerer already has an equal counter, Register returns that
// one. If the registerer is nil, nothing is registered. Register fails if the registerer has a different collector of
// this name.
func Register(on prometheus.Registerer, name, help string, labels ...string) (*prometheus.CounterVec, error) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	if on == nil {
		return c, nil
	}
	err := on.Register(c)
	var same prometheus.AlreadyRegisteredError
	if errors.As(err, &same) {
		if other, ok := same.ExistingCollector.(*prometheus.CounterVec); ok {
			return other, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}
