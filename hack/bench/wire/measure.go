// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/admitkit/admitkit/hack/bench/subject"
)

// A Figure is the end-to-end cost of one subject. Latencies cover all rounds together. Other values
// are the median of the rounds.
type Figure struct {
	Row, Size, Candidate, Shape string
	Connections                 int
	PerSecond                   float64
	P50NS, P99NS                float64
	ServerCPUNS                 float64 // per request
	Ratio, RatioCPU             float64 // ratios to controller-runtime: of the median latency, and of the CPU time
}

// A Bench runs measurements against one server process.
type Bench struct {
	server *target
	Rounds int
	Slice  time.Duration
}

// Start starts the server process, which is this program with the arguments. The arguments must make it call
// [Serve].
func Start(arguments ...string) (*Bench, error) {
	server, err := start(arguments...)
	return &Bench{server: server}, err
}

// Stop ends the server process.
func (b *Bench) Stop() error { return b.server.stop() }

// A load is the state of one measured subject.
type load struct {
	request   []byte
	conns     []*conn
	latencies []time.Duration
	rates     []float64
	cpu       []float64
}

// Measure sends requests to the subjects of a row of the benchmark, in short turns, and returns a figure for each
// subject. It opens the given number of connections for each.
func (b *Bench) Measure(row *subject.Row, connections int) ([]Figure, error) {
	loads := make([]*load, len(row.Subjects))
	for i, s := range row.Subjects {
		l := &load{request: b.server.request(path(row, s), s.Body)}
		loads[i] = l
		for range connections {
			c, err := b.server.dial()
			if err != nil {
				return nil, err
			}
			defer func() { _ = c.Close() }()
			l.conns = append(l.conns, c)
		}
	}
	for round := range b.Rounds + 1 { // the first round is a warm-up
		for i, l := range loads {
			if round == 1 {
				*l = load{request: l.request, conns: l.conns}
			}
			if err := b.slice(l); err != nil {
				return nil, fmt.Errorf("%s %s: %s: %w", row.Size, row.Name, row.Subjects[i].Name(), err)
			}
		}
	}
	return figures(row, loads, connections), nil
}

// slice sends requests over all connections of a load for one time slice, and at least one per connection.
func (b *Bench) slice(l *load) error {
	before, err := b.server.cpu(true)
	if err != nil {
		return err
	}
	begin := time.Now()
	latencies := make([][]time.Duration, len(l.conns))
	var group errgroup.Group
	for i, c := range l.conns {
		group.Go(func() error {
			for start := begin; start.Sub(begin) < b.Slice; {
				if _, err := c.send(l.request); err != nil {
					return err
				}
				now := time.Now()
				latencies[i] = append(latencies[i], now.Sub(start))
				start = now
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := b.server.cpu(false)
	if err != nil {
		return err
	}
	all := slices.Concat(latencies...)
	l.latencies = append(l.latencies, all...)
	l.rates = append(l.rates, float64(len(all))/took.Seconds())
	l.cpu = append(l.cpu, float64((after-before).Nanoseconds())/float64(len(all)))
	return nil
}

func figures(row *subject.Row, loads []*load, connections int) []Figure {
	all := make([]Figure, len(loads))
	for i, l := range loads {
		s := row.Subjects[i]
		slices.Sort(l.latencies)
		slices.Sort(l.rates)
		all[i] = Figure{
			Row: row.Name, Size: row.Size, Candidate: s.Candidate, Shape: s.Shape, Connections: connections,
			PerSecond: l.rates[len(l.rates)/2], ServerCPUNS: Median(l.cpu),
			P50NS: float64(l.latencies[len(l.latencies)/2]), P99NS: float64(l.latencies[len(l.latencies)*99/100]),
		}
	}
	for i := range all {
		f, base := &all[i], &all[row.Baseline(i)]
		f.Ratio, f.RatioCPU = base.P50NS/f.P50NS, base.ServerCPUNS/f.ServerCPUNS
	}
	return all
}

// Median returns the median of the values, or 0 without values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
