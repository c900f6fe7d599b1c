// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/doctor"
)

// readTraffic reads the metrics of every API server that answers. If watchFor is not 0, it reads them twice, so that only
// the calls in between count.
func (r *reader) readTraffic(ctx context.Context) {
	servers := r.apiServers(ctx)
	before, ok := r.scrape(ctx, servers)
	if !ok {
		return
	}
	known := max(len(servers)-1, 1)
	if r.watchFor == 0 {
		r.s.Traffic = &doctor.Traffic{Metrics: sum(before), Servers: len(before), Known: known}
		return
	}
	r.watch(ctx)
	after, _ := r.scrape(ctx, servers)
	counted, answered := between(before, after)
	r.s.Traffic = &doctor.Traffic{Metrics: counted, Servers: answered, Known: known, Watched: r.watchFor}
}

// sum adds the counts of all API servers.
func sum(all map[string]*doctor.Metrics) *doctor.Metrics {
	total := &doctor.Metrics{Calls: map[doctor.CallKey]*doctor.Calls{}}
	for _, m := range all {
		total.Add(m)
	}
	return total
}

// between returns the sum of the counts between two scrapes, and the number of API servers in it. It leaves out servers
// that did not answer both times, or restarted in between.
func between(before, after map[string]*doctor.Metrics) (total *doctor.Metrics, servers int) {
	differences := map[string]*doctor.Metrics{}
	for at, m := range before {
		if later := after[at]; later != nil && later.Start.Equal(m.Start) {
			differences[at] = later.Since(m)
		}
	}
	return sum(differences), len(differences)
}

// watch waits, and shows the time that is left.
func (r *reader) watch(ctx context.Context) {
	end := time.Now().Add(r.watchFor)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for left := r.watchFor; left > 0; left = time.Until(end) {
		r.step("watching the calls: %s left", left.Round(time.Second))
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		case <-tick.C:
		}
	}
}

// apiServers returns a client configuration for the address of the kubeconfig, and for each API server that the Service
// kubernetes leads to.
func (r *reader) apiServers(ctx context.Context) []*rest.Config {
	all := []*rest.Config{r.config}
	of := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"}
	found, _ := list[discoveryv1.EndpointSlice](ctx, r, resource("discovery.k8s.io", "v1", "endpointslices"), metav1.NamespaceDefault, of)
	base, err := url.Parse(r.config.Host)
	if err != nil || base.Scheme != "https" {
		return all
	}
	for _, slice := range found {
		for _, e := range slice.Endpoints {
			for _, p := range slice.Ports {
				if p.Port == nil || len(e.Addresses) == 0 {
					continue
				}
				config := rest.CopyConfig(r.config)
				config.Host = "https://" + net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port)))
				if config.ServerName == "" { // all API servers of a cluster have a certificate for this name
					config.ServerName = base.Hostname()
				}
				config.Dial = r.dial
				all = append(all, config)
			}
		}
	}
	return all
}

// scrape reads the metrics of each server. The result is by address. The address of the kubeconfig is left out if it leads
// to one of the other servers.
func (r *reader) scrape(ctx context.Context, servers []*rest.Config) (map[string]*doctor.Metrics, bool) {
	type answer struct {
		metrics *doctor.Metrics
		err     error
	}
	answers := make([]answer, len(servers))
	var group errgroup.Group
	for i, config := range servers {
		group.Go(func() error {
			r.step("reading the metrics of %s", config.Host)
			answers[i].metrics, answers[i].err = r.metricsFrom(ctx, config)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	metrics := map[string]*doctor.Metrics{}
	silent := 0
	var last error
	for i, a := range answers[1:] {
		if a.err != nil {
			silent, last = silent+1, a.err
		} else {
			metrics[servers[i+1].Host] = a.metrics
		}
	}
	switch first := answers[0]; {
	case first.err == nil && !isKnown(metrics, first.metrics):
		metrics[servers[0].Host] = first.metrics
	case first.err != nil && len(metrics) == 0:
		r.gap("get", schema.GroupResource{Resource: "/metrics"}, "", first.err)
		return nil, false
	}
	if silent > 0 && len(metrics) < len(servers)-1 && !apierrors.IsForbidden(last) {
		r.gap("get", schema.GroupResource{Resource: fmt.Sprintf("/metrics of %d API servers", silent)}, "", last)
	}
	return metrics, true
}

// isKnown reports whether the metrics come from a process that was already scraped at another address.
func isKnown(metrics map[string]*doctor.Metrics, m *doctor.Metrics) bool {
	for _, other := range metrics {
		if other.Start.Equal(m.Start) {
			return true
		}
	}
	return false
}

func (r *reader) metricsFrom(ctx context.Context, config *rest.Config) (*doctor.Metrics, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, 2*r.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(within, http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // nothing was written
	switch answer.StatusCode {
	case http.StatusOK:
		return doctor.ReadMetrics(answer.Body)
	case http.StatusForbidden, http.StatusUnauthorized:
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "/metrics"}, "", errors.New(answer.Status))
	}
	return nil, errors.New(answer.Status)
}
