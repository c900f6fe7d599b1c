// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/metrics"
)

// An installing is an installer whose phase the test sets.
type installing struct{ phase install.Phase }

func (i *installing) Status() install.Status { return install.Status{Phase: i.phase} }

// For every phase of package install, a scrape must show that phase as the current one.
func TestInstallation(t *testing.T) {
	installer, reg := &installing{}, prometheus.NewRegistry()
	if err := metrics.Installation(reg, "hooks", installer); err != nil {
		t.Fatal(err)
	}
	phases := constants(t, "install", "Phase")
	for _, phase := range phases {
		installer.phase = install.Phase(phase)
		want := map[string]float64{}
		for _, other := range phases {
			want[fmt.Sprintf("admitkit_install_phase{configuration=%q,phase=%q}", "hooks", other)] = 0
		}
		want[fmt.Sprintf("admitkit_install_phase{configuration=%q,phase=%q}", "hooks", phase)] = 1
		got := scrape(t, reg)
		if check(t, got, want); len(got) != len(want) || len(phases) < 6 {
			t.Errorf("%d series, want %d: %v", len(got), len(want), got)
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestRegisteringAnInstallation(t *testing.T) {
	reg, installer := prometheus.NewRegistry(), &installing{}
	for _, row := range []struct{ got, want string }{
		{fmt.Sprint(metrics.Installation(nil, "a", installer)), "metrics: Installation needs a registry and an installer"},
		{fmt.Sprint(metrics.Installation(reg, "a", nil)), "metrics: Installation needs a registry and an installer"},
		{fmt.Sprint(metrics.Installation(reg, "a", installer), metrics.Installation(reg, "b", installer)), "<nil> <nil>"},
		{fmt.Sprint(metrics.Installation(reg, "a", installer)), `metrics: the registry already has the installer "a": give each installer its own name`},
		{fmt.Sprint(metrics.Installation(reg, "\xff", installer)), `metrics: cannot register the installer "\xff": `},
	} {
		if len(row.got) < len(row.want) || row.got[:len(row.want)] != row.want {
			t.Errorf("got %s, want %s", row.got, row.want)
		}
	}
}
