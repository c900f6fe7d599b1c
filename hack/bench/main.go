// SPDX-License-Identifier: Apache-2.0

// Command bench compares admitkit with other libraries: the cost of an admission and the quality of patches. It fails
// if a library returns a wrong response, but never because of a measured number.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
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

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "measure only the rows with targets: typed and projection, validate, noop and mutate, up to 197KB")
	flag.Var(&o.parts, "parts", "only these `parts`: "+partNames.String())
	flag.Var(&o.rows, "rows", "only these `rows`: "+rowNames.String())
	sizes := sizeNames()
	flag.Var(&o.sizes, "sizes", "only these `sizes`: "+sizes.String())
	flag.Var(&o.shapes, "shapes", "only these `shapes` of the object: "+shapeNames.String())
	flag.IntVar(&o.rounds, "rounds", 9, "number of rounds; figures are medians. 1.4MB and the wire have fewer rounds")
	flag.DurationVar(&o.slice, "slice", 100*time.Millisecond, "how long one handler is measured in one round")
	flag.StringVar(&o.jsonFile, "json", "", "write the figures to this `file`, too")
	flag.StringVar(&o.refreshDoc, "markdown", "", "replace the tables in this `file`")
	flag.BoolVar(&o.serve, "serve", false, "run as the server of the measurements over the wire (used by this program)")
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
		return errors.New("-rounds must be at least 1, -slice must be positive, and there must be no arguments")
	}
	if err := o.checkNames(); err != nil {
		return err
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
	if len(r.Admissions)+len(r.Patches)+len(r.Wire) == 0 {
		return errors.New("nothing to measure: end to end, bench measures only validate, noop and mutate, up to 197KB")
	}
	fmt.Printf("\n%s\n", r.legend())
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
