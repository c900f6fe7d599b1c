// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/record"
)

// TestRecorder requires that a scrape shows each number of a recorder.
func TestRecorder(t *testing.T) {
	reg := prometheus.NewRegistry()
	stats := record.Stats{Calls: 1000, Recorded: 1, NotSampled: 2, QueueFull: 3, DiskFailed: 4, TooLarge: 5, Unreadable: 6, WrittenBytes: 7, QueuedBytes: 8}
	if err := metrics.Recorder(reg, "hooks", func() record.Stats { return stats }); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{`admitkit_recorder_written_bytes_total{recorder="hooks"}`: 7, `admitkit_recorder_queued_bytes{recorder="hooks"}`: 8}
	for i, result := range []string{"recorded", "not_sampled", "queue_full", "disk_failed", "too_large", "unreadable"} {
		want[fmt.Sprintf("admitkit_recorder_calls_total{recorder=\"hooks\",result=%q}", result)] = float64(i + 1)
	}
	got := scrape(t, reg)
	if check(t, got, want); len(got) != len(want) {
		t.Errorf("%d series, want %d: %v", len(got), len(want), got)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	for _, row := range []struct {
		got  error
		want string
	}{
		{metrics.Recorder(nil, "a", func() record.Stats { return stats }), "metrics: Recorder needs a registry and the Stats of a recorder"},
		{metrics.Recorder(reg, "a", nil), "metrics: Recorder needs a registry and the Stats of a recorder"},
		{metrics.Recorder(reg, "hooks", func() record.Stats { return stats }), `metrics: the registry already has the recorder "hooks": give each recorder its own name`},
	} {
		if fmt.Sprint(row.got) != row.want {
			t.Errorf("got %v, want %s", row.got, row.want)
		}
	}
}

// TestRecorderCounts requires that the metrics of a real recorder change with a call.
func TestRecorderCounts(t *testing.T) {
	recorder, err := record.New(record.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	if err := metrics.Recorder(reg, "hooks", recorder.Stats); err != nil {
		t.Fatal(err)
	}
	answers := recorder.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	}))
	answers.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mutate", strings.NewReader("{}")))
	if err := recorder.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, scrape(t, reg), map[string]float64{`admitkit_recorder_calls_total{recorder="hooks",result="recorded"}`: 1})
}
