// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// FuzzFind compares the results of Find and Part with a search in the maps to which encoding/json decodes the document.
func FuzzFind(f *testing.F) {
	for _, seed := range []struct{ document, path string }{
		{`{"spec":{"template":{"a":1}}}`, "spec.template"},
		{` { "spec" : { "x":[{"template":2}], "template" : [1, {}] , "y":null} } `, "spec.template"},
		{`{"spec":{"template":1},"spec":{}}`, "spec.template"},
		{`{"spec":{"template":1},"spec":null}`, "spec.template"},
		{`{"spec":[{"template":1}]}`, "spec.template"},
		{`{"sp\u0065c":{"template":"}"}}`, "spec.template"},
		{`{"spec":{"template":null}}`, "spec.template"},
		{`[1]`, ""},
		{`{"spec":{"template":1}`, "spec.template"},
		{`{"spec":{"template":1}}}`, "spec.template"},
	} {
		f.Add([]byte(seed.document), seed.path)
	}
	f.Fuzz(func(t *testing.T, document []byte, dotted string) {
		var path []string
		if dotted != "" {
			path = strings.Split(dotted, ".")
		}
		body := append([]byte(`{"object": `), document...)
		at, end, err := Find(body, len(`{"object": `), 1, path)
		cursor := jsonraw.At(body, len(`{"object": `), 1)
		if skipErr := cursor.Skip(); (err == nil) != (skipErr == nil) || err == nil && end != cursor.Offset() {
			t.Fatalf("got end %d and %v, the value ends at %d with %v", end, err, cursor.Offset(), skipErr)
		}
		if err != nil {
			return
		}
		value := body[len(`{"object": `):end]
		var want any
		if err := json.Unmarshal(value, &want); err != nil {
			return // an invalid value that sigs.k8s.io/json accepts, such as a number out of range
		}
		for _, name := range path {
			object, _ := want.(map[string]any)
			want = object[name]
		}
		if at.Found != (want != nil) {
			t.Fatalf("got %+v, want %v", at, want)
		}
		part := Part(value, path)
		if !at.Found {
			if part != nil {
				t.Fatalf("got %s", part)
			}
			return
		}
		if !bytes.HasPrefix(body[at.Offset:], part) || at.Depth != 1+len(path) {
			t.Fatalf("the part is %s, and at the offset begins %s", part, body[at.Offset:])
		}
		var got any
		if err := json.Unmarshal(part, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v (%v), want %v", got, err, want)
		}
	})
}
