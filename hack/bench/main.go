// SPDX-License-Identifier: Apache-2.0

// Command bench measures what an admission costs with admitkit and with others, and how good
// their patches are. It only measures: it fails when a candidate gives a wrong answer, never
// for a number.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

type options struct {
	quick, serve         bool
	parts                list
	rows, sizes, shapes  list
	rounds               int
	slice                time.Duration
	jsonFile, refreshDoc string
}

// A list is a comma-separated flag; empty means everything.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	*l = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

func (l *list) has(name string) bool { return len(*l) == 0 || slices.Contains(*l, name) }

// or sets a list that is empty.
func (l *list) or(names ...string) {
	if len(*l) == 0 {
		*l = names
	}
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "the rows with targets only: typed and projection, validate, noop and mutate, up to 197KB")
	flag.Var(&o.parts, "parts", "only these `parts`: admissions,wire,patches")
	flag.Var(&o.rows, "rows", "only these `rows`: validate,noop,mutate,mutate-prepend,update,noop-unknown,mutate-unknown")
	flag.Var(&o.sizes, "sizes", "only these `sizes`: 2KB,9KB,197KB,1.4MB")
	flag.Var(&o.shapes, "shapes", "only these `shapes` of the object: typed,projection,unstructured,custom")
	flag.IntVar(&o.rounds, "rounds", 9, "rounds, of which the median counts; fewer for 1.4MB and over the wire")
	flag.DurationVar(&o.slice, "slice", 20*time.Millisecond, "how long one handler is measured in one round; seven times that over the wire")
	flag.StringVar(&o.jsonFile, "json", "", "write the figures to this `file`, too")
	flag.StringVar(&o.refreshDoc, "markdown", "", "replace the tables in this `file`")
	flag.BoolVar(&o.serve, "serve", false, "be the server of the measurements over the wire (used by this program)")
	flag.Parse()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o *options) error {
	if o.serve {
		return serve()
	}
	if o.rounds < 1 || o.slice <= 0 || flag.NArg() > 0 {
		return errors.New("want one round or more, a slice longer than nothing, and no arguments")
	}
	if o.quick {
		o.parts.or("admissions")
		o.rows.or("validate", "noop", "mutate")
		o.sizes.or("2KB", "9KB", "197KB")
		o.shapes.or("typed", "projection")
	}
	r := newReport()
	fmt.Println(r.subjects())
	for _, part := range []struct {
		name    string
		measure func(*options) error
	}{{"admissions", r.measureAdmissions}, {"patches", r.comparePatches}, {"wire", r.measureWire}} {
		if !o.parts.has(part.name) {
			continue
		}
		if err := part.measure(o); err != nil {
			return err
		}
	}
	if o.jsonFile != "" {
		if err := r.writeJSON(o.jsonFile); err != nil {
			return err
		}
	}
	if o.refreshDoc != "" {
		return r.refresh(o.refreshDoc)
	}
	return nil
}
