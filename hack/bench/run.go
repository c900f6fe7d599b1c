// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/admitkit/admitkit/hack/bench/document"
	"github.com/admitkit/admitkit/hack/bench/quality"
	"github.com/admitkit/admitkit/hack/bench/subject"
	"github.com/admitkit/admitkit/hack/bench/wire"
)

// rowsOf returns the requested rows of a size, with the subjects for which keep returns true.
func (o *options) rowsOf(size document.Size, keep func(*subject.Subject) bool) []*subject.Row {
	if !o.sizes.has(size.Name) {
		return nil
	}
	var rows []*subject.Row
	for _, row := range subject.Rows(size) {
		if row = row.Only(keep); row != nil && o.rows.has(row.Name) {
			rows = append(rows, row)
		}
	}
	return rows
}

// keep reports whether a subject was requested. A projection is compared with the whole type, so a request
// for projections includes the whole type.
func (o *options) keep(s *subject.Subject) bool {
	typed := o.shapes.has(subject.Typed) || o.shapes.has(subject.Projection)
	switch s.Candidate {
	case subject.Harness:
		return true
	case subject.Floor:
		return typed
	case subject.ControllerRuntime:
		return o.shapes.has(s.Shape) || s.Shape == subject.Typed && typed
	case subject.Kubewebhook:
		return o.shapes.has(s.Shape) && !o.quick
	default:
		return o.shapes.has(s.Shape)
	}
}

func (r *Report) measureAdmissions(o *options) error {
	for _, size := range document.Sizes {
		first, rounds := len(r.Admissions), o.rounds
		if size.Large {
			rounds = max(min(rounds, 5), rounds/2) // one call may take longer than a slice
		}
		for _, row := range o.rowsOf(size, o.keep) {
			progress("%s %s", row.Size, row.Name)
			if err := row.Verify(); err != nil {
				return err
			}
			measured, err := measureRow(row, rounds, o.slice)
			if err != nil {
				return err
			}
			r.Admissions = append(r.Admissions, measured...)
		}
		if first < len(r.Admissions) {
			details(r.Admissions[first:]).text(os.Stdout)
		}
	}
	r.ratios().text(os.Stdout)
	r.netRatios().text(os.Stdout)
	if t := r.budgets(); len(t.rows) > 0 {
		t.text(os.Stdout)
	}
	return nil
}

func (r *Report) comparePatches(*options) error {
	progress("patches")
	var err error
	if r.Patches, err = quality.Compare(); err != nil {
		return err
	}
	for _, t := range []*table{patches(r.Patches, false), patches(r.Patches, true), sums(r.Patches)} {
		t.text(os.Stdout)
	}
	return nil
}

func (r *Report) measureWire(o *options) (err error) {
	b, err := wire.Start("-serve")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()
	b.Rounds, b.Slice = max(min(o.rounds, 5), o.rounds/2), o.slice*3/2
	for _, connections := range []int{1, 8} {
		for _, size := range document.Sizes {
			if size.Large {
				continue
			}
			for _, row := range o.rowsOf(size, overWire) {
				if !wireRows.has(row.Name) {
					continue
				}
				progress("%s %s, %s", row.Size, row.Name, plural(connections, "connection"))
				measured, err := b.Measure(row, connections)
				if err != nil {
					return err
				}
				r.Wire = append(r.Wire, measured...)
			}
		}
		if figures := r.over(connections); len(figures) > 0 {
			endToEnd(figures).text(os.Stdout)
			costs(figures).text(os.Stdout)
		}
	}
	return nil
}

// overWire reports whether a subject is measured end to end.
func overWire(s *subject.Subject) bool {
	return s.Candidate == subject.Floor || s.Shape == subject.Typed && s.Candidate != subject.Kubewebhook || s.Shape == subject.Projection
}

// legend returns one line that explains the tables.
func (r *Report) legend() string {
	const page = "see docs/performance.md"
	if len(r.Admissions)+len(r.Wire) == 0 {
		return page
	}
	return "floor: reads the body and writes a fixed answer; harness: does nothing, so it is what the benchmark adds to every call; " +
		"in brackets: targets, which fail nothing; " + page
}

func serve() error { return wire.Serve(os.Stdin, os.Stdout) }

// progress prints what is being measured, because the tables appear only at the end.
func progress(format string, args ...any) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r\033[Kmeasuring "+format+"\r", args...)
	}
}
