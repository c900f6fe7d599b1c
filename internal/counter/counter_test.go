// SPDX-License-Identifier: Apache-2.0

package counter

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRegister(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, err := Register(registry, "a_total", "Help.", "x")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Register(registry, "a_total", "Help.", "x"); err != nil || again != first {
		t.Errorf("the second call returned a different counter, or the error %v", err)
	}
	if _, err := Register(registry, "a_total", "Help.", "y"); err == nil {
		t.Error("want an error for a counter of that name with other labels")
	}
	if _, err := Register(nil, "a_total", "Help."); err != nil {
		t.Error(err)
	}
	registry.MustRegister(prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "b_total", Help: "Help."}, []string{"x"}))
	if _, err := Register(registry, "b_total", "Help.", "x"); err == nil {
		t.Error("want an error for a gauge of that name")
	}
}
