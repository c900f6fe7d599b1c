// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

// filled returns a report with the text in all of its fields.
func filled(text string) *Report {
	r := &Report{}
	fill(reflect.ValueOf(r).Elem(), text)
	return r
}

func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Int32, reflect.Int:
		v.SetInt(2)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// FuzzShown checks that no name controls a terminal or forges a line, and that JSON keeps the name.
func FuzzShown(f *testing.F) {
	for _, text := range []string{"\x1b[2Jx", "a\nadmitkit: all is well", "\u009b31m", "\u202eabc", "a\U000e0041b", "\xff\r", "web", "\"", "\\u001b", "\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := filled(text)
		explained, failed := *r, *r
		explained.Objects = []Object{r.Objects[0]}
		explained.Objects[0].Error = ""
		lines := 0
		for _, r := range []*Report{&explained, &failed} {
			for _, webhook := range []string{"", text} {
				var plain, painted strings.Builder
				if err := r.Text(&plain, screen.Painter{}, webhook); err != nil {
					t.Fatal(err)
				}
				look(t, plain.String())
				if err := r.Text(&painted, screen.Painter{On: true}, webhook); err != nil {
					t.Fatal(err)
				}
				for _, code := range []string{"0", "1", "2", "31", "32", "33"} {
					text := strings.ReplaceAll(painted.String(), "\x1b["+code+"m", "")
					painted.Reset()
					painted.WriteString(text)
				}
				look(t, painted.String())
				lines += strings.Count(plain.String(), "\n")
			}
		}
		if lines == 0 {
			t.Error("the report is empty")
		}
		var encoded bytes.Buffer
		if err := r.JSON(&encoded); err != nil {
			t.Fatal(err)
		}
		look(t, encoded.String())
		var back Report
		if err := json.Unmarshal(encoded.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		noSummary := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Summary" }, cmp.Ignore()) // text output only
		if diff := cmp.Diff(filled(strings.ToValidUTF8(text, "\uFFFD")), &back, noSummary); diff != "" && !strings.ContainsRune(strings.ToValidUTF8(text, "\uFFFD"), '\uFFFD') {
			t.Error(diff)
		}
	})
}

func look(t *testing.T, text string) {
	t.Helper()
	for _, c := range text {
		if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == '\u2028') {
			t.Errorf("%q has %q", text, c)
		}
	}
}

// TestShownLines checks that a name with a newline stays on one line.
func TestShownLines(t *testing.T) {
	var want, got strings.Builder
	if err := filled("a b").Text(&want, screen.Painter{}, ""); err != nil {
		t.Fatal(err)
	}
	if err := filled("a\nb").Text(&got, screen.Painter{}, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Error(diff)
	}
}
