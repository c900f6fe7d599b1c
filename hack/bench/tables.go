// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/hack/bench/document"
	"github.com/admitkit/admitkit/hack/bench/subject"
)

// details returns the table with every figure of one size.
func details(figures []Figure) *table {
	t := &table{
		title: figures[0].Size + ": time and CPU of one call; ratio is controller-runtime's time by ours, in the same run",
		head:  []string{"row", "handler", "body", "time", "CPU", "bytes", "allocs", "ratio", "quartiles", "CPU ratio", "target"}, left: 2,
	}
	row := ""
	for _, f := range figures {
		if row != "" && row != f.Row {
			t.add()
		}
		row = f.Row
		ratio, quartiles, cpu := times(f.Ratio), fmt.Sprintf("%.1f–%.1f", f.RatioLow, f.RatioHigh), times(f.RatioCPU)
		if f.Candidate == subject.ControllerRuntime || f.Shape == "" {
			ratio, quartiles, cpu = "", "", ""
		}
		t.add(f.Row, f.handler(), size(float64(f.BodyBytes)), duration(f.WallNS), duration(f.CPUNS), size(f.Bytes),
			fmt.Sprintf("%.0f", f.Allocs), ratio, quartiles, cpu, f.against())
	}
	return t
}

func (f *Figure) handler() string {
	if f.Shape == "" {
		return f.Candidate
	}
	return f.Candidate + " " + f.Shape
}

// against returns the target of a figure and whether it is met, or "" without a target.
func (f *Figure) against() string {
	target, has := targets[[3]string{f.Row, f.Size, f.Shape}]
	if !has || f.Candidate != subject.Admitkit {
		return ""
	}
	return fmt.Sprintf("%gx %s", target, mark(f.Ratio >= target))
}

// find returns the figure of a candidate, or nil.
func (r *Report) find(row, size, candidate, shape string) *Figure {
	i := slices.IndexFunc(r.Admissions, func(f Figure) bool {
		return f.Row == row && f.Size == size && f.Candidate == candidate && f.Shape == shape
	})
	if i < 0 {
		return nil
	}
	return &r.Admissions[i]
}

// rowNames returns the measured rows, in order.
func (r *Report) rowNames() []string {
	var names []string
	for _, f := range r.Admissions {
		if !slices.Contains(names, f.Row) {
			names = append(names, f.Row)
		}
	}
	return names
}

func (r *Report) sizes() []string {
	var names []string
	for _, s := range document.Sizes {
		if slices.ContainsFunc(r.Admissions, func(f Figure) bool { return f.Size == s.Name }) {
			names = append(names, s.Name)
		}
	}
	return names
}

// grid returns a table with a line for each row of each handler and a column for each size.
func (r *Report) grid(title string, handlers [][2]string, cell func(*Figure) string) *table {
	t := &table{title: title, head: append([]string{"handler", "row"}, r.sizes()...), left: 2}
	for _, h := range handlers {
		if len(t.rows) > 0 {
			t.add()
		}
		for _, row := range r.rowNames() {
			if h[1] == "" && row != "validate" && row != "update" {
				continue // costs the same as validate
			}
			line, measured := []string{(&Figure{Candidate: h[0], Shape: h[1]}).handler(), row}, false
			for _, size := range r.sizes() {
				text := ""
				if f := r.find(row, size, h[0], h[1]); f != nil {
					text, measured = cell(f), true
				}
				line = append(line, text)
			}
			if measured {
				t.add(line...)
			}
		}
	}
	return t
}

var ours = [][2]string{
	{subject.Admitkit, subject.Typed}, {subject.Admitkit, subject.Projection},
	{subject.Admitkit, subject.Unstructured}, {subject.Admitkit, subject.Custom},
}

var onPods = [][2]string{
	{subject.ControllerRuntime, subject.Typed}, {subject.Kubewebhook, subject.Typed},
	{subject.Admitkit, subject.Typed}, {subject.Admitkit, subject.Projection},
	{subject.Floor, ""}, {subject.Harness, ""},
}

func (r *Report) ratios() *table {
	return r.grid("How many times faster than controller-runtime (in brackets: the target, and whether it is met)", ours, func(f *Figure) string {
		if target := f.against(); target != "" {
			return times(f.Ratio) + " (" + target + ")"
		}
		return times(f.Ratio)
	})
}

func (r *Report) netRatios() *table {
	return r.grid("The same, after the time of the harness is subtracted", ours, func(f *Figure) string { return times(f.Net) })
}

func (r *Report) times() *table {
	return r.grid("Time of one call", onPods, func(f *Figure) string { return duration(f.WallNS) })
}

func (r *Report) cpu() *table {
	return r.grid("CPU of one call, garbage collection included", onPods, func(f *Figure) string { return duration(f.CPUNS) })
}

func (r *Report) allocations() *table {
	return r.grid("Allocations of one call, including those of the harness", onPods, func(f *Figure) string {
		return fmt.Sprintf("%.0f / %s", f.Allocs, size(f.Bytes))
	})
}

// budgets compares the allocations at 2 KB with their limits.
func (r *Report) budgets() *table {
	t := &table{title: "Allocations at 2KB, and their limits", head: []string{"handler", "row", "allocs", "target"}, left: 2}
	for _, b := range allocBudgets {
		f := r.find(b.row, "2KB", subject.Admitkit, b.shape)
		if f == nil {
			continue
		}
		most, text := b.most, fmt.Sprintf("%.0f", b.most)
		if b.over != "" {
			base := r.find(b.over, "2KB", subject.Admitkit, b.shape)
			if base == nil {
				continue
			}
			most, text = base.Allocs+b.most, fmt.Sprintf("%s + %.0f", b.over, b.most)
		}
		t.add(f.handler(), b.row, fmt.Sprintf("%.0f", f.Allocs), text+" "+mark(f.Allocs < most+0.5))
	}
	return t
}
