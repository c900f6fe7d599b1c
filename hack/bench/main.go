// SPDX-License-Identifier: Apache-2.0

// Command bench measures what an admission costs with admitkit and with others, and how good
// the patches are. It only measures: it fails when it cannot, never for a number.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/admitkit/admitkit/hack/bench/document"
	"github.com/admitkit/admitkit/hack/bench/subject"
)

type options struct {
	quick  bool
	rows   list
	sizes  list
	shapes list
	rounds int
	slice  time.Duration
	json   string
}

// A list is a comma-separated flag; empty means everything.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	*l = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

func (l list) has(name string) bool { return len(l) == 0 || slices.Contains(l, name) }

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "typed and projection, validate, noop and mutate, up to 197KB")
	flag.Var(&o.rows, "rows", "only these rows: validate,noop,mutate…")
	flag.Var(&o.sizes, "sizes", "only these sizes: 2KB,9KB,197KB,1.4MB")
	flag.Var(&o.shapes, "shapes", "only these shapes: typed,projection…")
	flag.IntVar(&o.rounds, "rounds", 9, "rounds, of which the median counts")
	flag.DurationVar(&o.slice, "slice", 20*time.Millisecond, "how long one subject is measured in one round")
	flag.StringVar(&o.json, "json", "", "write the figures to this file, too")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.rounds < 1 || o.slice <= 0 || flag.NArg() > 0 {
		return errors.New("want at least one round, a slice longer than nothing, and no arguments")
	}
	if o.quick {
		if len(o.rows) == 0 {
			o.rows = list{"validate", "noop", "mutate"}
		}
		if len(o.sizes) == 0 {
			o.sizes = list{"2KB", "9KB", "197KB"}
		}
	}
	var figures []Figure
	for _, size := range document.Sizes {
		if !o.sizes.has(size.Name) {
			continue
		}
		for _, row := range subject.Rows(size) {
			if !o.rows.has(row.Name) {
				continue
			}
			measured, err := measureRow(row, o.rounds, o.slice)
			if err != nil {
				return err
			}
			printRow(os.Stdout, measured)
			figures = append(figures, measured...)
		}
	}
	if o.json == "" {
		return nil
	}
	out, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(out, '\n'), 0o600)
}
