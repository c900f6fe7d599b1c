// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

func (d *decoder) str(v reflect.Value) error {
	if d.c.Kind() != jsonraw.String {
		return d.nullOr("string")
	}
	text, plain, err := d.c.Text()
	if err == nil {
		d.plain = plain
		v.SetString(d.texts.Text(text))
	}
	return err
}

func (d *decoder) boolean(v reflect.Value) error {
	if d.c.Kind() != jsonraw.Bool {
		return d.nullOr("boolean")
	}
	raw, err := d.c.Value()
	v.SetBool(len(raw) == len("true"))
	return err
}

func (d *decoder) integer(v reflect.Value) error {
	raw, start, err := d.number(v)
	if raw == nil {
		return err
	}
	n, ok := parseInt(raw)
	if !ok || v.OverflowInt(n) {
		return numberError(start, raw, v.Type())
	}
	v.SetInt(n)
	return nil
}

func (d *decoder) unsigned(v reflect.Value) error {
	raw, start, err := d.number(v)
	if raw == nil {
		return err
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || v.OverflowUint(n) {
		return numberError(start, raw, v.Type())
	}
	v.SetUint(n)
	return nil
}

func (d *decoder) float(v reflect.Value) error {
	raw, start, err := d.number(v)
	if raw == nil {
		return err
	}
	n, err := strconv.ParseFloat(string(raw), v.Type().Bits())
	if err != nil || v.OverflowFloat(n) {
		return numberError(start, raw, v.Type())
	}
	v.SetFloat(n)
	return nil
}

// number returns the bytes and the offset of the next value if it is a number, else nil.
func (d *decoder) number(v reflect.Value) (raw []byte, start int, err error) {
	if d.c.Kind() != jsonraw.Number {
		return nil, 0, d.nullOr(v.Kind().String())
	}
	start = d.c.Offset()
	raw, err = d.c.Value()
	return raw, start, err
}

// mostDigits bounds the digits of a number in a message.
const mostDigits = 32

func numberError(start int, raw []byte, t reflect.Type) error {
	if len(raw) > mostDigits {
		raw = append(raw[:mostDigits:mostDigits], "…"...)
	}
	return &Error{Offset: start, Err: fmt.Errorf("want %s, got number %s", t.Kind(), raw)}
}

// parseInt returns the value of a checked number if it is an integer that fits.
func parseInt(raw []byte) (int64, bool) {
	digits := raw
	if raw[0] == '-' {
		digits = raw[1:]
	}
	if len(digits) > 18 { // may overflow
		n, err := strconv.ParseInt(string(raw), 10, 64)
		return n, err == nil
	}
	var n int64
	for _, b := range digits {
		if b < '0' || b > '9' {
			return 0, false
		}
		n = 10*n + int64(b-'0')
	}
	if len(digits) < len(raw) {
		n = -n
	}
	return n, true
}

// bytes reads a base64 string or, rarely, a list of numbers.
func (d *decoder) bytes(v reflect.Value) error {
	switch d.c.Kind() {
	case jsonraw.String:
	case jsonraw.Array:
		return d.opaque(v)
	default:
		return d.nullOr("string")
	}
	start := d.c.Offset()
	text, err := d.c.TextBytes()
	if err != nil {
		return err
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(out, text)
	if err != nil {
		return &Error{Offset: start, Err: fmt.Errorf("not base64: %w", err)}
	}
	v.SetBytes(out[:n])
	return nil
}
