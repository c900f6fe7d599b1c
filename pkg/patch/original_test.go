// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/internal/received"
	"github.com/admitkit/admitkit/pkg/patch"
)

// settings is a Go type that has only some members of its documents. It has a field for each kind of value.
type settings struct {
	Labels map[string]string     `json:"labels,omitempty"`
	Ports  []port                `json:"ports,omitempty"`
	Limit  *port                 `json:"limit,omitempty"`
	Free   any                   `json:"free,omitempty"`
	Raw    *runtime.RawExtension `json:"raw,omitempty"`
}

type port struct {
	Number int `json:"number,omitempty"`
}

// TestOriginalDecodeRefuses decodes invalid documents. After each error, the Document must still
// decode a valid document.
func TestOriginalDecodeRefuses(t *testing.T) {
	var none *settings
	for _, row := range []struct {
		reason, data  string
		offset, depth int
		into          any
		end           int
		at            patch.Pointer
		want          string
	}{
		{"a value that does not fit", `{"ports":[{},{"number":"x"}]} `, 0, 0, new(settings), 29, "/ports/1/number", "ports[1].number: want int, got string"},
		{"one inside something else", `{"o":{"ports":7},"p":1}`, 5, 1, new(settings), 16, "/ports", "ports: want array, got number"},
		{"text that stops", `{"ports":[{"number":1`, 0, 0, new(settings), 0, "/ports/0", "ports[0]: unexpected end of JSON after an object member"},
		{"text that is not JSON", `{"o":{"labels":{"a/b":}}}`, 5, 1, new(settings), 0, "/labels/a~1b", `labels[a/b]: unexpected '}' looking for the beginning of a value`},
		{"text that is not JSON, in an unknown member", `{"x":[1}`, 0, 0, new(settings), 0, "", `unexpected '}' after an array element`},
		{"text that is not JSON after a duplicate name", `{"ports":[],"ports":[x]}`, 0, 0, new(settings), 0, "", `unexpected 'x' looking for the beginning of a value`},
		{"too many levels", `[[]]`, 0, 9999, new(any), 0, "", "nested deeper than 10000"},
		{"nothing", ``, 0, 0, new(settings), 0, "", "the document is empty"},
		{"white space", " \n", 1, 0, new(settings), 0, "", "the document is empty"},
		{"the end of the data", `{}`, 2, 0, new(settings), 0, "", "the document is empty"},

		{"no value to decode into", `{}`, 0, 0, nil, 0, "", "cannot decode into <nil>: want a pointer that is not nil"},
		{"not a pointer", `{}`, 0, 0, settings{}, 0, "", "cannot decode into patch_test.settings: want a pointer that is not nil"},
		{"a nil pointer", `{}`, 0, 0, none, 0, "", "cannot decode into *patch_test.settings: want a pointer that is not nil"},
		{"an offset before the data", `{}`, -1, 0, new(settings), 0, "", "offset -1 is not within the 2 bytes of data"},
		{"an offset after the data", `{}`, 3, 0, new(settings), 0, "", "offset 3 is not within the 2 bytes of data"},
		{"a negative depth", `{}`, 0, -1, new(settings), 0, "", "depth -1 is not between 0 and 10000"},
		{"an impossible depth", `{}`, 0, 10001, new(settings), 0, "", "depth 10001 is not between 0 and 10000"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var base received.Document
			if _, err := base.Decode([]byte(`{"labels":{"a":"b"}}`), 0, 0, new(settings)); err != nil {
				t.Fatal(err)
			}
			end, err := base.Decode([]byte(row.data), row.offset, row.depth, row.into)
			if err == nil || !strings.HasPrefix(err.Error(), row.want) || end != row.end {
				t.Fatalf("got the end %d and error %v, want %d and %s", end, err, row.end, row.want)
			}
			var fault *patch.Error
			argument := strings.Contains(row.want, "cannot decode into") || strings.Contains(row.want, " is not ")
			if errors.As(err, &fault) == argument || !argument && (fault.Pointer != row.at || fault.Err == nil) {
				t.Errorf("got %#v, want one at %q", err, row.at)
			}
			if p, err := base.Diff(&settings{}); err == nil || !strings.HasPrefix(err.Error(), "there is no decoded document") {
				t.Errorf("the difference after that: got %s and error %v", p.AppendJSON(nil), err)
			}
			checkOriginal(t, &base, `{"ports":[{"number":1,"x":2}]}`, `[{"op":"replace","path":"/ports/0/number","value":9}]`, func(s *settings) { s.Ports[0].Number = 9 })
		})
	}
}

func checkOriginal(t *testing.T, base *received.Document, raw, want string, edit func(*settings)) {
	t.Helper()
	var s settings
	if end, err := base.Decode([]byte(raw), 0, 0, &s); err != nil || end != len(raw) {
		t.Errorf("%s: decoded up to %d, error %v", raw, end, err)
		return
	}
	edit(&s)
	if p, err := base.Diff(&s); err != nil || string(p.AppendJSON(nil)) != want {
		t.Errorf("%s: got %s and error %v, want %s", raw, p.AppendJSON(nil), err, want)
	}
}

func TestOriginalDiffBeforeDecode(t *testing.T) {
	var base received.Document
	if p, err := base.Diff(&settings{}); err == nil || !strings.HasPrefix(err.Error(), "there is no decoded document") {
		t.Errorf("got %s and error %v", p.AppendJSON(nil), err)
	}
}

// TestOriginalDiffOfAnotherType calls Diff of one received.Document with values of different Go types. A call must not
// depend on the types of earlier calls.
func TestOriginalDiffOfAnotherType(t *testing.T) {
	raw := []byte(`{"labels":{"a":"b"},"ports":[{"number":1,"x":2}]}`)
	var base received.Document
	var s settings
	if _, err := base.Decode(raw, 0, 0, &s); err != nil {
		t.Fatal(err)
	}
	s.Ports[0].Number = 2
	type labelled struct {
		Labels map[string]string `json:"labels"`
	}
	whole := &s
	for _, row := range []struct {
		after any
		want  string
	}{
		{&s, `[{"op":"replace","path":"/ports/0/number","value":2}]`},
		{labelled{map[string]string{"a": "c"}}, `[{"op":"replace","path":"/labels/a","value":"c"}]`},
		{&whole, `[{"op":"replace","path":"/ports/0/number","value":2}]`},
		{map[string]any{"labels": map[string]any{"a": "b"}}, `[{"op":"remove","path":"/ports"}]`},
		{s, `[{"op":"replace","path":"/ports/0/number","value":2}]`},
	} {
		p, err := base.Diff(row.after)
		if got := string(p.AppendJSON(nil)); err != nil || got != row.want {
			t.Errorf("%T: got %s and error %v, want %s", row.after, got, err, row.want)
		}
	}
}

// TestOriginalOfSeveralDocuments decodes several documents into one received.Document, one after another. Their values
// have different offsets, and no old offset may remain.
func TestOriginalOfSeveralDocuments(t *testing.T) {
	var base received.Document
	for _, row := range []struct{ raw, want string }{
		{`{"labels":{"x":"y"},"ports":[{"number":1},{"number":2}]}`, `[{"op":"add","path":"/labels/a","value":"b"}]`},
		{`{"unknown":[1,2,{"labels":{}}]}`, `[{"op":"add","path":"/labels","value":{"a":"b"}}]`},
		{`{"labels":{"a":"c","a/b":"d"}}`, `[{"op":"replace","path":"/labels/a","value":"b"}]`},
		{`{"labels":{"a":"b"}}`, `[]`},
	} {
		checkOriginal(t, &base, row.raw, row.want, func(s *settings) {
			if s.Labels == nil {
				s.Labels = map[string]string{}
			}
			s.Labels["a"] = "b"
		})
	}
}

func TestTwoOriginalsAtOnce(t *testing.T) {
	var wait sync.WaitGroup
	for _, team := range []string{"red", "blue"} {
		wait.Go(func() {
			var base received.Document
			for range 200 {
				checkOriginal(t, &base, `{"labels":{"team":"none"},"ports":[{"number":1}]}`,
					`[{"op":"replace","path":"/labels/team","value":"`+team+`"}]`, func(s *settings) { s.Labels["team"] = team })
			}
		})
	}
	wait.Wait()
}

func TestDiffRefusesItsArguments(t *testing.T) {
	pod := &corev1.Pod{}
	var nilPod *corev1.Pod
	var nothing any
	text, list := "text", []int{1}
	const bytesAre, want = "after is bytes: use Documents to compare two documents", "want a struct, a map or a pointer to one, got after of type "
	for _, row := range []struct {
		reason, raw string
		after       any
		want        string
	}{
		{"bytes", `{"a":1}`, []byte(`{"a":2}`), bytesAre},
		{"a document", `{"a":1}`, document(`{"a":2}`), bytesAre},
		{"a pointer to a document", `{"a":1}`, new(document), bytesAre},
		{"a text", `{"a":1}`, text, want + "string"},
		{"a pointer to a text", `{"a":1}`, &text, want + "*string"},
		{"a number", `{"a":1}`, 1, want + "int"},
		{"a list", `{"a":1}`, list, want + "[]int"},
		{"a function", `{"a":1}`, func() {}, want + "func()"},
		{"nil", `{"a":1}`, nil, "there is no value to compare with: after is nil"},
		{"a nil pointer", `{"a":1}`, nilPod, "there is no value to compare with: after is nil"},
		{"a pointer to a nil pointer", `{"a":1}`, &nilPod, "there is no value to compare with: after is nil"},
		{"a pointer to nil", `{"a":1}`, &nothing, "there is no value to compare with: after is nil"},
		{"a struct that encodes to a text", `{"a":1}`, selfNamed{"x"}, "want an object, but a patch_test.selfNamed encodes to a string"},
		{"a struct that encodes to null", `{"a":1}`, &metav1.Time{}, "not a valid v1.Time"},

		{"no document", ``, pod, "the document is empty"},
		{"white space", " \n", pod, "the document is empty"},
		{"no JSON", `spec:`, pod, "unexpected 's' looking for the beginning of a value"},
		{"an array", `[]`, pod, "want an object, got an array"},
		{"a text for a document", `"{}"`, pod, "want an object, got a string"},
		{"null", `null`, pod, "want an object, got null"},
	} {
		p, err := patch.Diff([]byte(row.raw), row.after)
		if p != nil || err == nil || err.Error() != row.want {
			t.Errorf("%s: got %s and error %v, want %s", row.reason, p.AppendJSON(nil), err, row.want)
		}
	}
	if _, err := patch.Diff(nil, pod); err == nil || err.Error() != "the document is empty" {
		t.Errorf("nil for a document: got %v", err)
	}
	var inside any = map[string]any{"a": 2}
	if p, err := patch.Diff([]byte(`{"a":1}`), &inside); err != nil || len(p) != 1 {
		t.Errorf("a map in an interface: got %s and error %v", p.AppendJSON(nil), err)
	}
}

type document []byte

// selfNamed is a struct that encodes to a JSON string, and decodes from anything.
type selfNamed struct{ name string }

func (n selfNamed) MarshalJSON() ([]byte, error) { return []byte(`"` + n.name + `"`), nil }

func (n *selfNamed) UnmarshalJSON([]byte) error { return nil }

// TestErrDuplicateName tests the claims in the comments of Diff and ErrDuplicateName.
func TestErrDuplicateName(t *testing.T) {
	for _, row := range []struct {
		reason, raw string
		after       settings
		at, want    string // the pointer of the error; the patch if there is none
	}{
		{"a field, nothing changed", `{"limit":{"number":1,"number":1}}`, settings{Limit: &port{1}}, "limit.number", ""},
		{"a field of a removed struct", `{"limit":{"number":1,"number":1}}`, settings{}, "limit.number", ""},
		{"an entry of a map, nothing changed", `{"labels":{"a":"c","a":"b"}}`, settings{Labels: map[string]string{"a": "b"}}, "", `[]`},
		{"an entry of a map, and it changed", `{"labels":{"a":"c","a":"b"}}`, settings{Labels: map[string]string{"a": "c"}}, "labels.a", ""},
		{"an entry of a map, and another one was added", `{"labels":{"a":"c","a":"b"}}`, settings{Labels: map[string]string{"a": "b", "d": ""}}, "labels.a", ""},
		{"an entry of a map, and another one was removed", `{"labels":{"a":"c","a":"b","d":"e"}}`, settings{Labels: map[string]string{"a": "b"}}, "labels.a", ""},
		{"an entry of a map without a type, nothing changed", `{"free":{"a":1,"a":2}}`, settings{Free: map[string]any{"a": int64(2)}}, "", `[]`},
		{"an entry of a map without a type", `{"free":{"a":1,"a":2}}`, settings{Free: map[string]any{"a": int64(1)}}, "free.a", ""},
		{"a map that is removed", `{"labels":{"a":"b","a":"c"}}`, settings{}, "", `[{"op":"remove","path":"/labels"}]`},
		{"a map that is replaced", `{"free":{"a":1,"a":2}}`, settings{Free: "x"}, "", `[{"op":"replace","path":"/free","value":"x"}]`},
		{"an unknown member", `{"x":{"a":1,"a":2},"limit":{"y":1,"y":2}}`, settings{Limit: &port{3}}, "", `[{"op":"add","path":"/limit/number","value":3}]`},
		{"an unknown member in a list without changes", `{"ports":[{"x":1,"x":2,"number":1}]}`, settings{Ports: []port{{1}}}, "", `[]`},
		{"an unknown member in an edited element", `{"ports":[{"x":1,"x":2,"number":1}]}`, settings{Ports: []port{{2}}}, "ports[0].x", ""},
		{"an unknown member in a moved element", `{"ports":[{"x":1,"x":2,"number":1},{"number":2}]}`, settings{Ports: []port{{2}, {1}}}, "", `[{"op":"move","from":"/ports/1","path":"/ports/0"}]`},
		{"a document as a value", `{"raw":{"a":1,"a":2}}`, settings{Raw: &runtime.RawExtension{Raw: []byte(`{"a":2}`)}}, "raw.a", ""},
		{"a document as a value, without changes", `{"raw":{"a":1,"a":2}}`, settings{Raw: &runtime.RawExtension{Raw: []byte(`{"a":1,"a":2}`)}}, "", `[]`},
	} {
		p, err := patch.Diff([]byte(row.raw), row.after)
		if row.at == "" {
			if got := string(p.AppendJSON(nil)); err != nil || got != row.want {
				t.Errorf("%s: got %s and error %v, want %s", row.reason, got, err, row.want)
			}
			continue
		}
		var fault *patch.Error
		if !errors.Is(err, patch.ErrDuplicateName) || !errors.As(err, &fault) || fault.Pointer.FieldPath() != row.at {
			t.Errorf("%s: got %s and error %v, want one at %s", row.reason, p.AppendJSON(nil), err, row.at)
		}
		var base received.Document
		if _, err := base.Decode([]byte(row.raw), 0, 0, new(settings)); err != nil {
			t.Errorf("%s: decoding refuses it: %v", row.reason, err)
		}
		if p, err := base.Diff(row.after); !errors.Is(err, patch.ErrDuplicateName) {
			t.Errorf("%s, with a received.Document: got %s and error %v", row.reason, p.AppendJSON(nil), err)
		}
	}
}

// TestDiffOfValuesThatDoNotFitTheType tests the comment of Diff on values that do not fit the type.
func TestDiffOfValuesThatDoNotFitTheType(t *testing.T) {
	for _, row := range []struct {
		reason, raw, want string
		after             settings
	}{
		{"an object for a list that is empty", `{"ports":{}}`, `[]`, settings{}},
		{"an object for a list that is not", `{"ports":{}}`, `[{"op":"replace","path":"/ports","value":[{"number":1}]}]`, settings{Ports: []port{{1}}}},
		{"a number for a text", `{"labels":{"a":1}}`, `[{"op":"replace","path":"/labels/a","value":"b"}]`, settings{Labels: map[string]string{"a": "b"}}},
		{"a text for a number, in a list that must be decoded", `{"ports":[{"number":"x"},{"number":2}]}`, ``, settings{Ports: []port{{2}}}},
	} {
		p, err := patch.Diff([]byte(row.raw), row.after)
		if got := string(p.AppendJSON(nil)); (err == nil) != (row.want != "") || err == nil && got != row.want {
			t.Errorf("%s: got %s and error %v, want %s", row.reason, got, err, row.want)
		}
		var base received.Document
		if _, err := base.Decode([]byte(row.raw), 0, 0, new(settings)); err == nil {
			t.Errorf("%s: a received.Document decodes it", row.reason)
		}
	}
}
