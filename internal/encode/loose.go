// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/internal/shape"
)

// loose encodes the value of an interface. It has its own code for the types that decoders produce, and encodes all
// other types by their shape.
func (e *encoder) loose(out []byte, x any) ([]byte, error) {
	switch x := x.(type) {
	case nil:
		return appendNull(out), nil
	case string:
		return appendText(out, x), nil
	case bool:
		return strconv.AppendBool(out, x), nil
	case int64:
		return strconv.AppendInt(out, x, 10), nil
	case float64:
		return appendFloat(out, x, 64)
	case map[string]any:
		return dictOf(e, out, x, (*encoder).loose)
	case []any:
		return e.looseList(out, x)
	}
	v := reflect.ValueOf(x)
	return e.value(out, v, shape.Of(v.Type()))
}

func (e *encoder) looseList(out []byte, list []any) ([]byte, error) {
	if list == nil {
		return appendNull(out), nil
	}
	err := e.enter()
	if err != nil {
		return nil, err
	}
	out = append(out, '[')
	for _, x := range list {
		if out, err = e.loose(out, x); err != nil {
			return nil, err
		}
		out = append(out, ',')
	}
	e.leave()
	return end(out, ']'), nil
}

// text and quantity encode one value of a map: a string or a quantity.
func (*encoder) text(out []byte, s string) ([]byte, error) { return appendText(out, s), nil }

func (*encoder) quantity(out []byte, q resource.Quantity) ([]byte, error) {
	return appendQuantity(out, q), nil
}
