// SPDX-License-Identifier: Apache-2.0

// Package encode encodes Go values as JSON, byte for byte like a json.Encoder with SetEscapeHTML(false), in
// a fraction of its time.
//
// The type's [shape.Shape] describes how encoding/json encodes a value. [Append] walks the value along its shape and
// appends to one buffer. It encodes the well-known types of apimachinery itself. encoding/json encodes a value with an
// opaque shape. It gets a pointer to the value if the value is addressable, so that it calls pointer methods. If an
// encoding fails, or a value nests so deeply that it may be a cycle, encoding/json encodes the whole value again. So
// all errors are encoding/json's own.
package encode

import (
	"errors"
	"reflect"
	"strconv"
	"sync"

	"github.com/admitkit/admitkit/internal/shape"
)

// Append appends the encoding of v, whose type s describes. If it fails, it returns dst with its old length and
// encoding/json's error.
func Append(dst []byte, v reflect.Value, s *shape.Shape) ([]byte, error) {
	e := encoders.Get().(*encoder)
	out, err := e.value(dst, v, s)
	if err != nil {
		return marshal(dst, v) // the encoder is dropped, because its state is undefined now
	}
	e.release()
	return out, nil
}

// An encoder holds the names and entries of the maps around the current value. Its methods append to the given buffer.
// After one of them has failed, the encoder must not be used again.
type encoder struct {
	names   []string
	entries []entry
	level   int
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// mostKept is the largest number of names and entries for which a pooled encoder keeps memory.
const mostKept = 1 << 12

func (e *encoder) release() {
	if cap(e.names) <= mostKept && cap(e.entries) <= mostKept {
		encoders.Put(e)
	}
}

// mostLevels is the nesting of pointers, maps and lists at which encoding/json begins to check for cycles.
const mostLevels = 1000

var errDeep = errors.New("too deep")

func (e *encoder) enter() error {
	if e.level++; e.level > mostLevels {
		return errDeep
	}
	return nil
}

func (e *encoder) leave() { e.level-- }

func (e *encoder) value(out []byte, v reflect.Value, s *shape.Shape) ([]byte, error) {
	switch s.Kind {
	case shape.String:
		return appendText(out, v.String()), nil
	case shape.Struct:
		return e.structure(out, v, s)
	case shape.List:
		return e.list(out, v, s)
	case shape.Map:
		return e.dict(out, v, s)
	case shape.Pointer:
		return e.pointer(out, v, s)
	case shape.Bool:
		return strconv.AppendBool(out, v.Bool()), nil
	case shape.Int:
		return strconv.AppendInt(out, v.Int(), 10), nil
	case shape.Uint:
		return strconv.AppendUint(out, v.Uint(), 10), nil
	case shape.Float:
		return appendFloat(out, v.Float(), v.Type().Bits())
	case shape.Bytes:
		return appendBytes(out, v.Bytes()), nil
	case shape.Any:
		return e.loose(out, v.Interface())
	}
	return known(out, v, s.Kind)
}

func appendNull(out []byte) []byte { return append(out, "null"...) }

func (e *encoder) structure(out []byte, v reflect.Value, s *shape.Shape) ([]byte, error) {
	out = append(out, '{')
	fields := shape.ValueOf(v)
	for i := range s.Fields {
		f := &s.Fields[i]
		value := fields.Field(f)
		if omitted(f, value) {
			continue
		}
		out = append(out, '"')
		out = append(out, f.Name...) // needs no escapes
		out = append(out, '"', ':')
		var err error
		if out, err = e.value(out, value, f.Shape); err != nil {
			return nil, err
		}
		out = append(out, ',')
	}
	return end(out, '}'), nil
}

// omitted returns f.Omitted(v). It has a shortcut for most omitted fields.
func omitted(f *shape.Field, v reflect.Value) bool {
	if f.OmitEmpty {
		switch f.Shape.Kind {
		case shape.Pointer, shape.Any:
			if v.IsNil() {
				return true
			}
		case shape.String, shape.List, shape.Map, shape.Bytes:
			if v.Len() == 0 {
				return true
			}
		case shape.Bool:
			if !v.Bool() {
				return true
			}
		default:
			return f.Omitted(v)
		}
	}
	return f.OmitZero && f.Omitted(v)
}

// end replaces the last comma, if there is one, with the closing bracket.
func end(out []byte, bracket byte) []byte {
	if last := len(out) - 1; out[last] == ',' {
		out[last] = bracket
		return out
	}
	return append(out, bracket)
}

func (e *encoder) list(out []byte, v reflect.Value, s *shape.Shape) ([]byte, error) {
	if v.IsNil() {
		return appendNull(out), nil
	}
	err := e.enter()
	if err != nil {
		return nil, err
	}
	out = append(out, '[')
	for i := range v.Len() {
		if out, err = e.value(out, v.Index(i), s.Elem); err != nil {
			return nil, err
		}
		out = append(out, ',')
	}
	e.leave()
	return end(out, ']'), nil
}

func (e *encoder) pointer(out []byte, v reflect.Value, s *shape.Shape) ([]byte, error) {
	if v.IsNil() {
		return appendNull(out), nil
	}
	err := e.enter()
	if err != nil {
		return nil, err
	}
	out, err = e.value(out, v.Elem(), s.Elem)
	e.leave()
	return out, err
}
