// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// A sample is the result of one call.
type sample struct {
	at   time.Time
	took time.Duration
	err  string // empty if the call succeeded
}

// samples are the results of many calls. They are safe for concurrent use.
type samples struct {
	mu   sync.Mutex
	list []sample
}

func (s *samples) add(at time.Time, err error) {
	one := sample{at: at, took: time.Since(at)}
	if err != nil {
		one.err = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, one)
}

func (s *samples) all() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func (s *samples) count() (calls, failed int) {
	for _, one := range s.all() {
		calls++
		if one.err != "" {
			failed++
		}
	}
	return calls, failed
}

// percentile returns the latency at fraction p of the calls that succeeded.
func (s *samples) percentile(p float64) time.Duration {
	var took []time.Duration
	for _, one := range s.all() {
		if one.err == "" {
			took = append(took, one.took)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[min(int(p*float64(len(took))), len(took)-1)]
}

// failures describes the failed calls. It groups equal errors, the most frequent first.
func (s *samples) failures(start time.Time) string {
	type group struct {
		text  string
		first sample
		n     int
	}
	var groups []*group
	byText := map[string]*group{}
	for _, one := range s.all() {
		if one.err == "" {
			continue
		}
		text := withoutPorts(one.err)
		if byText[text] == nil {
			byText[text] = &group{text: text, first: one}
			groups = append(groups, byText[text])
		}
		byText[text].n++
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(b.n, a.n) })
	var b strings.Builder
	for i, g := range groups {
		if i == 12 {
			fmt.Fprintf(&b, "  … and %d more kinds\n", len(groups)-i)
			break
		}
		at := g.first.at.Sub(start).Round(time.Millisecond)
		fmt.Fprintf(&b, "  %d×, the first after %s, which took %s: %s\n", g.n, at, g.first.took.Round(time.Millisecond), g.text)
	}
	return b.String()
}

// withoutPorts replaces each port in the text of an error, so that errors that differ only in their ports are equal.
func withoutPorts(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		i := strings.IndexByte(text, ':')
		if i < 0 {
			break
		}
		rest := strings.TrimLeft(text[i+1:], "0123456789")
		b.WriteString(text[:i+1])
		if digits := len(text) - i - 1 - len(rest); digits >= 4 {
			b.WriteString("PORT")
		} else {
			b.WriteString(text[i+1 : i+1+digits])
		}
		text = rest
	}
	return b.String() + text
}

// A row is one line of the table of results.
type row struct {
	proof                                            string
	calls, failed, shed, retried, rotations, restart int
	p50, p99                                         time.Duration
	note                                             string
}

var (
	tableMu sync.Mutex
	table   []row
)

func report(t *testing.T, r row) {
	t.Helper()
	r.proof = cmp.Or(r.proof, t.Name())
	tableMu.Lock()
	defer tableMu.Unlock()
	table = append(table, r)
}

func printTable(out io.Writer) {
	if len(table) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "calls\tfailed\tshed\tretried\trotations\trestarts\tp50\tp99\t  proof")
	for _, r := range table {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t  %s\n", r.calls, r.failed, r.shed, r.retried, r.rotations, r.restart,
			r.p50.Round(time.Millisecond), r.p99.Round(time.Millisecond), strings.TrimSpace(r.proof+"  "+r.note))
	}
	_ = w.Flush()
}
