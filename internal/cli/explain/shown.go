// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf16"

	"github.com/admitkit/admitkit/internal/textutil"
)

// visible returns a copy of the report with all names and messages on one line and without control characters.
func (r *Report) visible() (*Report, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	c := &Report{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, err
	}
	for i := range c.Objects {
		for j := range c.Objects[i].Webhooks {
			from, to := &r.Objects[i].Webhooks[j], &c.Objects[i].Webhooks[j]
			to.Summary = from.Summary // not in the JSON
			for k := range to.Predicates {
				to.Predicates[k].Summary = from.Predicates[k].Summary
			}
		}
	}
	show(reflect.ValueOf(c))
	return c, nil
}

func show(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(shownLine(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			show(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			show(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			show(v.Field(i))
		}
	}
}

// shownLine puts text on one line and escapes its invisible characters.
func shownLine(text string) string {
	return textutil.Visible(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}

// escaped escapes the invisible characters of a JSON text as \uXXXX.
func escaped(text string) string {
	var out strings.Builder
	for _, c := range text {
		switch {
		case textutil.Visible(string(c)) == string(c):
			out.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}
	return out.String()
}
