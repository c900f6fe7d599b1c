// SPDX-License-Identifier: Apache-2.0

// Package counter registers counters for Prometheus that several values of a type share.
package counter

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register returns a counter with these labels. It returns the counter that the registerer already has under this name,
// if there is one. If the registerer is nil, nothing is registered.
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
