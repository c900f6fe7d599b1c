// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// any decodes the next value into v, an interface without methods.
func (d *decoder) any(v reflect.Value) error {
	x, err := d.readLoose()
	if err == nil && x != nil {
		v.Set(reflect.ValueOf(x))
	}
	return err
}

// loose returns the next value in the types of unstructured objects: map[string]any, []any, string, int64,
// float64, bool or nil.
func (d *decoder) loose() (any, error) {
	if !d.outlines {
		return d.readLoose()
	}
	part := d.begin(d.c.Kind())
	x, err := d.readLoose()
	d.end(part)
	return x, err
}

// readLoose is like loose, but it does not add a Part for the value itself to the outline.
func (d *decoder) readLoose() (any, error) {
	switch d.c.Kind() {
	case jsonraw.Object:
		return d.looseObject()
	case jsonraw.Array:
		return d.looseArray()
	case jsonraw.String:
		text, plain, err := d.c.Text()
		d.plain = plain
		return d.texts.Text(text), err
	case jsonraw.Number:
		return d.looseNumber()
	case jsonraw.Bool:
		raw, err := d.c.Value()
		return len(raw) == len("true"), err
	default: // null, or not JSON
		return nil, d.c.Skip()
	}
}

func (d *decoder) looseObject() (map[string]any, error) {
	m := map[string]any{}
	more, err := d.c.OpenObject()
	for more && err == nil {
		var name []byte
		if name, err = d.entry(); err != nil {
			break
		}
		key := d.texts.Text(name)
		if m[key], err = d.loose(); err != nil {
			return nil, at(key, err)
		}
		more, err = d.c.NextMember()
	}
	return m, err
}

func (d *decoder) looseArray() ([]any, error) {
	list := []any{}
	more, err := d.c.OpenArray()
	for more && err == nil {
		var elem any
		if elem, err = d.loose(); err != nil {
			return nil, atIndex(len(list), err)
		}
		list = append(list, elem)
		more, err = d.c.NextElement()
	}
	return list, err
}

// looseNumber returns an int64 for an integer that fits, and otherwise a float64.
func (d *decoder) looseNumber() (any, error) {
	start := d.c.Offset()
	raw, err := d.c.Value()
	if err != nil {
		return nil, err
	}
	if !bytes.ContainsAny(raw, ".eE") {
		if n, ok := parseInt(raw); ok {
			return n, nil
		}
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil, &Error{Offset: start, Err: fmt.Errorf("the number is too large for a float64")}
	}
	return n, nil
}
