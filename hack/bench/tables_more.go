// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/hack/bench/quality"
	"github.com/admitkit/admitkit/hack/bench/subject"
	"github.com/admitkit/admitkit/hack/bench/wire"
)

// endToEnd returns the table for one number of connections.
func endToEnd(figures []wire.Figure) *table {
	t := &table{
		title: fmt.Sprintf("TLS, HTTP/1.1, %s on loopback; ratios to controller-runtime", plural(figures[0].Connections, "connection")),
		head:  []string{"size", "row", "handler", "calls/s", "p50", "p99", "server CPU", "p50 ratio", "CPU ratio"}, left: 3,
	}
	group := ""
	for _, f := range figures {
		if group != "" && group != f.Size+f.Row {
			t.add()
		}
		group = f.Size + f.Row
		ratio, cpu := times(f.Ratio), times(f.RatioCPU)
		if f.Candidate == subject.ControllerRuntime {
			ratio, cpu = "", ""
		}
		t.add(f.Size, f.Row, (&Figure{Candidate: f.Candidate, Shape: f.Shape}).handler(), fmt.Sprintf("%.0f", f.PerSecond),
			duration(f.P50NS), duration(f.P99NS), duration(f.ServerCPUNS), ratio, cpu)
	}
	return t
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func (r *Report) over(connections int) []wire.Figure {
	return slices.DeleteFunc(slices.Clone(r.Wire), func(f wire.Figure) bool { return f.Connections != connections })
}

// costs returns the table with the CPU seconds for a million admissions. This number equals the microseconds for one
// admission.
func costs(figures []wire.Figure) *table {
	t := &table{
		title: fmt.Sprintf("CPU seconds of the server for a million admissions, TLS included (%s)", plural(figures[0].Connections, "connection")),
		head:  []string{"size", "row", "reading the body only", "controller-runtime", "admitkit typed", "admitkit projection"}, left: 2,
	}
	columns := [][2]string{
		{subject.Floor, ""}, {subject.ControllerRuntime, subject.Typed}, {subject.Admitkit, subject.Typed}, {subject.Admitkit, subject.Projection},
	}
	for _, f := range figures {
		if f.Candidate != subject.Floor {
			continue
		}
		line := []string{f.Size, f.Row}
		for _, c := range columns {
			i := slices.IndexFunc(figures, func(g wire.Figure) bool {
				return g.Size == f.Size && g.Row == f.Row && g.Candidate == c[0] && g.Shape == c[1]
			})
			line = append(line, fmt.Sprintf("%.0f", figures[i].ServerCPUNS/1e3))
		}
		t.add(line...)
	}
	return t
}

// patches returns the table of every edit on one kind of document.
func patches(results []quality.Result, newer bool) *table {
	title := "Patches of a Pod that the Go types know whole: operations, bytes"
	if newer {
		title = "Patches of a Pod from a newer API server, with unknown fields in every list: operations, bytes"
	}
	t := &table{title: title, head: append([]string{"edit"}, quality.Tools()...), left: 1 + len(quality.Tools())}
	for _, r := range results {
		if r.Newer != newer {
			continue
		}
		if r.Tool == quality.Tools()[0] {
			t.add(r.Edit)
		}
		cell := fmt.Sprintf("%d, %d B", r.Operations, r.Bytes)
		if r.Spurious > 0 {
			cell += fmt.Sprintf(", %d spurious", r.Spurious)
		}
		if r.Verdict != quality.Right {
			cell += " ✗ " + r.Verdict
		}
		last := len(t.rows) - 1
		t.rows[last] = append(t.rows[last], cell)
	}
	return t
}

// sums returns the totals of the results by tool.
func sums(results []quality.Result) *table {
	t := &table{
		title: fmt.Sprintf("Patches of all %d edits together", len(results)/len(quality.Tools())), left: 1,
		head: []string{"made by", "operations", "bytes", "spurious", "does not apply", "another Pod", "field lost", "field moved", "refused"},
	}
	for _, name := range quality.Tools() {
		var operations, bytes, spurious int
		verdicts := map[string]int{}
		for _, r := range results {
			if r.Tool == name {
				operations, bytes, spurious = operations+r.Operations, bytes+r.Bytes, spurious+r.Spurious
				verdicts[r.Verdict]++
			}
		}
		line := []string{name, fmt.Sprint(operations), fmt.Sprint(bytes), fmt.Sprint(spurious)}
		for _, v := range []string{quality.Invalid, quality.Other, quality.Lost, quality.Moved, quality.Refused} {
			line = append(line, fmt.Sprint(verdicts[v]))
		}
		t.add(line...)
	}
	return t
}
