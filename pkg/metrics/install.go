// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitkit/admitkit/pkg/install"
)

// Installation registers metrics of an installer, such as an [install.Installer], on reg. They are read at each scrape.
// The label "configuration" of the metrics has the value name, which must be unique in the registry. Use the name of
// the webhook configuration.
func Installation(reg prometheus.Registerer, name string, installer interface{ Status() install.Status }) error {
	if reg == nil || installer == nil {
		return errors.New("metrics: Installation needs a registry and an installer")
	}
	return register(reg, newInstallCollector(name, installer), fmt.Sprintf("the installer %q", name), "give each installer its own name")
}

// installPhases lists the phases of an installation. A test compares it with the constants of
// package install.
var installPhases = []install.Phase{
	install.Idle, install.Installing, install.FailingOpen, install.Installed, install.Superseded, install.Removed,
}

// An installCollector reads the status of an installer once for each scrape.
type installCollector struct {
	installer interface{ Status() install.Status }
	phase     *prometheus.Desc
}

func newInstallCollector(name string, installer interface{ Status() install.Status }) *installCollector {
	return &installCollector{installer, prometheus.NewDesc("admitkit_install_phase",
		"1 for the current phase of the installation of the webhooks, 0 for the others.", []string{"phase"}, prometheus.Labels{"configuration": name})}
}

func (c *installCollector) Describe(descs chan<- *prometheus.Desc) { descs <- c.phase }

func (c *installCollector) Collect(metrics chan<- prometheus.Metric) {
	at := c.installer.Status().Phase
	for _, p := range installPhases {
		metrics <- prometheus.MustNewConstMetric(c.phase, prometheus.GaugeValue, truth(p == at), string(p))
	}
}
