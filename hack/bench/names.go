// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/hack/bench/document"
	"github.com/admitkit/admitkit/hack/bench/subject"
)

// A list is the value of a flag with names separated by commas. An empty list means all names.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	*l = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

func (l *list) has(name string) bool { return len(*l) == 0 || slices.Contains(*l, name) }

// or sets the list to names if it is empty.
func (l *list) or(names ...string) {
	if len(*l) == 0 {
		*l = names
	}
}

// Names that the flags accept.
var (
	partNames  = list{"admissions", "patches", "wire"}
	rowNames   = list{"validate", "noop", "mutate", "mutate-prepend", "update", "noop-unknown", "mutate-unknown"}
	wireRows   = list{"validate", "noop", "mutate"}
	shapeNames = list{subject.Typed, subject.Projection, subject.Unstructured, subject.Custom}
)

func sizeNames() list {
	var names list
	for _, size := range document.Sizes {
		names = append(names, size.Name)
	}
	return names
}

// checkNames returns an error for unknown names, before a run that takes minutes.
func (o *options) checkNames() error {
	var errs []error
	for _, c := range []struct {
		flag         string
		asked, valid list
	}{
		{"parts", o.parts, partNames}, {"rows", o.rows, rowNames}, {"sizes", o.sizes, sizeNames()}, {"shapes", o.shapes, shapeNames},
	} {
		for _, name := range c.asked {
			if !slices.Contains(c.valid, name) {
				errs = append(errs, fmt.Errorf("-%s: unknown name %q, want one of %s", c.flag, name, strings.Join(c.valid, ", ")))
			}
		}
	}
	return errors.Join(errs...)
}
