// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// A store keeps scraped samples in memory for Prometheus' query engine.
type store struct {
	engine *promql.Engine
	series map[string]*series
}

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func newStore() *store {
	return &store{
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, EnableNegativeOffset: true, EnableAtModifier: true, Parser: parser.NewParser(parser.Options{})}),
		series: map[string]*series{},
	}
}

// scrape reads a registry at a given time and adds the labels of its target.
func (s *store) scrape(t testing.TB, reg prometheus.Gatherer, at time.Time, target map[string]string) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.TimeFromUnixNano(at.UnixNano())}, families...)
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range samples {
		all := map[string]string{}
		for name, value := range sample.Metric {
			all[string(name)] = string(value)
		}
		for name := range target {
			if _, taken := all[name]; taken {
				t.Fatalf("%v has the label %s, which Prometheus sets for a target", sample.Metric, name)
			}
		}
		maps.Copy(all, target)
		ls := labels.FromMap(all)
		one := s.series[ls.String()]
		if one == nil {
			one = &series{labels: ls}
			s.series[ls.String()] = one
		}
		one.samples = append(one.samples, point{at.UnixMilli(), float64(sample.Value)})
	}
}

// query returns the value of an expression at a given time.
func (s *store) query(t testing.TB, expr string, at time.Time) promql.Vector {
	t.Helper()
	q, err := s.engine.NewInstantQuery(t.Context(), s, nil, expr, at)
	if err != nil {
		t.Fatalf("%s\n%v", expr, err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	if len(result.Warnings) > 0 {
		t.Errorf("%s\ncauses the warnings %v", expr, result.Warnings)
	}
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s\n%v", expr, err)
	}
	return slices.Clone(vector) // Close reuses the memory of the vector
}

// A point is one sample of a series. It implements chunks.Sample.
type point struct {
	t int64
	v float64
}

func (p point) T() int64                    { return p.t }
func (p point) ST() int64                   { return 0 }
func (p point) F() float64                  { return p.v }
func (point) H() *histogram.Histogram       { return nil }
func (point) FH() *histogram.FloatHistogram { return nil }
func (point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample         { return p }

// The following methods implement storage.Queryable.

func (s *store) Querier(_, _ int64) (storage.Querier, error) { return s, nil }

func (s *store) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{}
	for _, key := range slices.Sorted(maps.Keys(s.series)) {
		one := s.series[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			set.all = append(set.all, storage.NewListSeries(one.labels, one.samples))
		}
	}
	return set
}

func (*store) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (*store) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (*store) Close() error { return nil }

type seriesSet struct {
	all []*storage.SeriesEntry
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at <= len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.at-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
