// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A checker collects validation errors. Its methods, and the functions for each kind, take the path of the value that
// they check. They extend this path with child fields only to report an error, because most objects are valid.
type checker struct {
	errs field.ErrorList
	// isUpdate is true for the update of a stored object, which may keep values that a new object must not have.
	isUpdate bool
}

func (c *checker) add(err *field.Error) { c.errs = append(c.errs, err) }

func (c *checker) required(at *field.Path, detail string) { c.add(field.Required(at, detail)) }

func (c *checker) forbidden(at *field.Path, detail string) { c.add(field.Forbidden(at, detail)) }

func (c *checker) duplicate(at *field.Path, value any) { c.add(field.Duplicate(at, value)) }

func (c *checker) invalid(at *field.Path, value any, messages ...string) {
	for _, m := range messages {
		c.add(field.Invalid(at, value, m))
	}
}

// notNegative adds an error if n, the value of a child field of the path, is negative.
func (c *checker) notNegative(at *field.Path, child string, n int64) {
	if n < 0 {
		c.invalid(at.Child(child), n, "must be greater than or equal to 0")
	}
}

// notNegativeIf does the same as notNegative for an optional number.
func notNegativeIf[T int32 | int64](c *checker, at *field.Path, child string, n *T) {
	if n != nil {
		c.notNegative(at, child, int64(*n))
	}
}

// enum checks that v is one of the allowed values. It allows the empty value, which has a meaning
// or a default.
func enum[T ~string](c *checker, at *field.Path, child string, v T, allowed ...T) {
	if v != "" && !slices.Contains(allowed, v) {
		c.add(field.NotSupported(at.Child(child), v, slices.Clone(allowed)))
	}
}

// enumIf does the same as enum for an optional value. If the value is present, it must not be empty.
func enumIf[T ~string](c *checker, at *field.Path, child string, v *T, allowed ...T) {
	if v != nil && !slices.Contains(allowed, *v) {
		c.add(field.NotSupported(at.Child(child), *v, slices.Clone(allowed)))
	}
}

// seen holds the keys of a list whose keys must be unique. Most lists are short, so a linear search
// costs less than a map.
type seen[K comparable] struct {
	few  []K
	many map[K]bool
}

const fewKeys = 16

// add adds the key and reports whether it is new.
func (s *seen[K]) add(key K) bool {
	if s.has(key) {
		return false
	}
	if s.many == nil && len(s.few) < fewKeys {
		s.few = append(s.few, key)
		return true
	}
	if s.many == nil {
		s.many = make(map[K]bool, 2*fewKeys)
		for _, k := range s.few {
			s.many[k] = true
		}
	}
	s.many[key] = true
	return true
}

func (s *seen[K]) has(key K) bool {
	if s.many != nil {
		return s.many[key]
	}
	return slices.Contains(s.few, key)
}
