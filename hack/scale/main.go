// SPDX-License-Identifier: Apache-2.0

// Command scale prints how many calls and connections the replicas of a webhook get in a large cluster, by a simulation.
// See docs/operations.md.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admitkit/admitkit/hack/scale/model"
)

// Parameters of the tables. cpu is that of one call for a typed mutating hook and a Pod of 9 kB, TLS included; see
// docs/benchmarks. test/proof measures the connections of a real control plane and compares them with the model.
const (
	cpu       = 100 * time.Microsecond
	duration  = 5 * time.Millisecond
	handshake = 3 * time.Millisecond
	age       = 5 * time.Minute

	fewReplicas = 3 // of the first column of the second table
)

type settings struct {
	model.Cluster
	servers, replicas int
}

func main() {
	s := settings{Cluster: model.Cluster{PodLifetime: 24 * time.Hour}}
	flag.IntVar(&s.Nodes, "nodes", 5000, "number of nodes")
	flag.IntVar(&s.Pods, "pods", 150_000, "number of Pods")
	flag.DurationVar(&s.PodLifetime, "pod-lifetime", s.PodLifetime, "mean time from the start of a Pod to its end")
	flag.Float64Var(&s.PodStarts, "pod-starts", 100, "highest number of Pods that start per second")
	flag.IntVar(&s.servers, "apiservers", 3, "number of API servers")
	flag.IntVar(&s.replicas, "replicas", 20, "number of replicas of the webhook")
	flag.Parse()
	if s.Nodes < 1 || s.Pods < 1 || s.PodStarts <= 0 || s.PodLifetime <= 0 || s.servers < 1 || s.replicas < 1 {
		fmt.Fprintln(os.Stderr, "scale: the values of all flags must be positive")
		os.Exit(2)
	}
	s.write(os.Stdout)
}

// A hook selects some of the writes in a cluster.
type hook struct {
	name    string
	matches func(model.Writes) bool
}

var hooks = []hook{
	{"Pods, CREATE", func(w model.Writes) bool { return w.Resource == "pods" && w.Operation == "CREATE" }},
	{"Pods, CREATE, UPDATE, DELETE, with subresources", func(w model.Writes) bool { return strings.HasPrefix(w.Resource, "pods") }},
	{"all resources and subresources, without leases and events", func(w model.Writes) bool { return w.Resource != "leases" && w.Resource != "events" }},
	{"all resources and subresources", func(model.Writes) bool { return true }},
}

// rates returns the calls per second, in the mean and at the peak.
func (s settings) rates(h hook) (mean, peak float64) {
	for _, w := range s.Writes() {
		if h.matches(w) {
			mean, peak = mean+w.Mean, peak+w.Peak
		}
	}
	return mean, peak
}

// A summary has the results of several simulations: means, and the most calls in flight in a replica.
type summary struct {
	busiest, open float64
	inFlight      int
}

const simulations = 10 // with different random numbers

func (s settings) simulate(rate float64, balance model.Balance, change func(*model.Settings)) (mean summary) {
	results := make([]*model.Result, simulations)
	var all sync.WaitGroup
	for i := range results {
		settings := model.Settings{
			APIServers: s.servers, Replicas: s.replicas, Rate: rate, Call: duration, Handshake: handshake, Balance: balance,
			MaxConnectionAge: age, Warmup: 3 * age, Count: time.Minute, Seed: uint64(i),
		}
		if change != nil {
			change(&settings)
		}
		all.Go(func() { results[i] = model.Simulate(settings) })
	}
	all.Wait()
	for _, r := range results {
		mean.busiest += r.Busiest() / simulations
		mean.inFlight = max(mean.inFlight, slices.Max(r.InFlight))
		for _, n := range r.Open {
			mean.open += n / float64(len(r.Open)) / simulations
		}
	}
	return mean
}

func (s settings) write(out io.Writer) {
	fmt.Fprintf(out, "%d nodes, %d Pods that live %.0f hours on average, %d API servers, %d replicas:\n\n", s.Nodes, s.Pods, s.PodLifetime.Hours(), s.servers, s.replicas)
	fmt.Fprintln(out, "| Rules | Calls/s, mean | Calls/s, peak | CPUs at the peak | Connections of a replica | Calls of the busiest replica | Most calls in flight in a replica |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|")
	for _, h := range hooks {
		s.writeHook(out, h)
	}
	_, peak := s.rates(hooks[2])
	fmt.Fprintf(out, "\nCalls of the busiest replica, at %.0f calls/s:\n\n", peak)
	fmt.Fprintf(out, "| | %d replicas | %[2]d replicas | %[2]d replicas, Kubernetes 1.37 with `--enable-aggregator-routing` |\n", fewReplicas, s.replicas)
	fmt.Fprintln(out, "|---|---:|---:|---:|")
	few := s
	few.replicas = fewReplicas
	for _, row := range []struct {
		name   string
		change func(*model.Settings)
	}{
		{"without a rollout", nil},
		{"in the minute after a rollout", rollout(age, 0)},
		{"6 minutes after a rollout", rollout(age, age+time.Minute)},
		{"6 minutes after a rollout, without `MaxConnectionAge`", rollout(0, age+time.Minute)},
	} {
		fmt.Fprintf(out, "| %s | %.1f × mean | %.1f × mean | %.1f × mean |\n", row.name, few.simulate(peak, model.AtRandom, row.change).busiest,
			s.simulate(peak, model.AtRandom, row.change).busiest, s.simulate(peak, model.PerCall, row.change).busiest)
	}
}

// writeHook writes a row of the first table.
func (s settings) writeHook(out io.Writer, h hook) {
	mean, peak := s.rates(h)
	r := s.simulate(peak, model.AtRandom, nil)
	fmt.Fprintf(out, "| %s | %.0f | %.0f | %.2f | %.1f | %.1f × mean | %d |\n", h.name, mean, peak, peak*cpu.Seconds(), r.open, r.busiest, r.inFlight)
}

// rollout replaces a replica every 10 seconds, and counts a minute after the pause that follows.
func rollout(age, pause time.Duration) func(*model.Settings) {
	return func(m *model.Settings) { m.MaxConnectionAge, m.Replace, m.Settle = age, 10*time.Second, pause }
}
