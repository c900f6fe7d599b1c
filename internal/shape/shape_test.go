// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

type inner struct {
	Name  string `json:"name"`
	Depth int    `json:"depth"`
}

type outer struct {
	inner  `json:",inline"`
	Name   string         `json:"name,omitempty"` // hides Name of inner
	Nested inner          `json:"nested,omitzero"`
	hidden int            //nolint:unused // not a member
	Left   string         `json:"-"`
	Plain  map[string]any // named like the field
	List   []inner        `json:"list" patchMergeKey:"name"`
	Self   *outer         `json:"self"`
}

func TestFieldsFollowTheRulesOfEncodingJSON(t *testing.T) {
	s := Of(reflect.TypeFor[outer]())
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	if want := []string{"depth", "name", "nested", "Plain", "list", "self"}; s.Kind != Struct || !slices.Equal(names, want) {
		t.Fatalf("kind %d, members %v, want %v", s.Kind, names, want)
	}
	field := func(name string) *Field { return &s.Fields[s.Find([]byte(name))] }
	if field("list").MergeKey != "name" || !field("name").OmitEmpty || !field("nested").OmitZero {
		t.Errorf("tags: %+v", s.Fields)
	}
	if field("self").Shape.Elem != s {
		t.Error("a type that contains itself has another shape inside")
	}
	v := outer{inner: inner{Depth: 3}, Name: "x"}
	fields := ValueOf(reflect.ValueOf(v))
	if fields.Field(field("depth")).Int() != 3 || field("depth").Of(reflect.ValueOf(v)).Int() != 3 || fields.Field(field("name")).String() != "x" {
		t.Error("fields of embedded structs")
	}
	for name, want := range map[string]bool{"name": false, "nested": true, "list": false} {
		if got := field(name).Omitted(fields.Field(field(name))); got != want {
			t.Errorf("%s is omitted: %v", name, got)
		}
	}
}

func TestFindsMembersInAnyOrder(t *testing.T) {
	s := Of(reflect.TypeFor[corev1.PodSpec]())
	for i, f := range s.Fields {
		forms := []string{
			`{"` + f.Name + `":0}`, // too short for the first comparison if the name is short
			`{"` + f.Name + `":0 ,"and":"more"}`,
			"{ \n\"" + f.Name + "\" :\t0        }",
			fmt.Sprintf(`{"\u%04x%s":0        }`, f.Name[0], f.Name[1:]),
		}
		for _, form := range forms {
			for _, next := range []int{0, i, i + 1, len(s.Fields)} {
				if got, value := member(t, s, form, next); got != i || value != "0" {
					t.Errorf("%s from %d on: found at %d, is at %d, with the value %s", form, next, got, i, value)
				}
			}
		}
	}
	for _, name := range []string{"", "nodename", "nodeNam", "nodeNamee", "Containers", "volume", "volumess"} {
		if i, value := member(t, s, `{"`+name+`":0        }`, 0); i >= 0 {
			t.Errorf("%q is found at %d, with the value %s", name, i, value)
		}
		if i := s.Find([]byte(name)); i >= 0 {
			t.Errorf("%q is found at %d", name, i)
		}
	}
}

// member reads the first member of an object that has a field in s, and returns the field's index and the member's
// value. It returns -1 if there is no such member.
func member(t *testing.T, s *Shape, object string, next int) (field int, value string) {
	t.Helper()
	c := jsonraw.NewCursor([]byte(object))
	if _, err := c.OpenObject(); err != nil {
		t.Fatal(err)
	}
	field, more, err := s.Next(c, next)
	if !more || err != nil {
		return -1, ""
	}
	raw, err := c.Value()
	if err != nil {
		t.Fatal(err)
	}
	return field, string(raw)
}

func TestNextWithoutAName(t *testing.T) {
	s := Of(reflect.TypeFor[corev1.PodSpec]())
	for _, object := range []string{`{`, `{"`, `{"volumes`, `{"volumes"`, `{"volumes" 0        }`, `{volumes:0        }`} {
		c := jsonraw.NewCursor([]byte(object))
		_, _ = c.OpenObject()
		if i, _, err := s.Next(c, 0); err == nil {
			t.Errorf("%s: field %d and no error", object, i)
		}
	}
}

// unnamed has a field of a type that has methods but no name.
type unnamed struct {
	Time struct{ metav1.Time } `json:"time"`
}

type quoted struct {
	N int `json:"n,string"`
}

type pointing struct{ *inner }

// twice is a struct with a duplicate name in its tags. It is made with reflect, because go vet rejects such a struct in
// source code.
var twice = reflect.New(reflect.StructOf([]reflect.StructField{
	{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
	{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
})).Elem().Interface()

func TestKinds(t *testing.T) {
	for _, row := range []struct {
		reason string
		value  any
		want   Kind
	}{
		{"a named string", corev1.PodPhase(""), String},
		{"an integer", int8(0), Int},
		{"a duration is an integer", time.Duration(0), Int},
		{"bytes", []byte{}, Bytes},
		{"a map by a named string", corev1.ResourceList{}, Map},
		{"a map by a number", map[int]string{}, Opaque},
		{"an array", [2]string{}, Opaque},
		{"a number that is kept as text", json.Number(""), Opaque},
		{"a type that decodes itself", json.RawMessage{}, Opaque},
		{"a time of apimachinery", metav1.Time{}, Time},
		{"any other time", metav1.MicroTime{}, Opaque},
		{"a quantity", resource.Quantity{}, Quantity},
		{"a number or a text", intstr.IntOrString{}, IntOrString},
		{"raw fields", metav1.FieldsV1{}, FieldsV1},
		{"a struct", corev1.Pod{}, Struct},
		{"a struct with quoted numbers", quoted{}, Opaque},
		{"a struct that embeds a pointer", pointing{}, Opaque},
		{"a struct with a duplicate name", twice, Opaque},
		{"a struct with methods that only its field has", unnamed{}, Opaque},
	} {
		if got := Of(reflect.TypeOf(row.value)).Kind; got != row.want {
			t.Errorf("%s (%T): kind %d, want %d", row.reason, row.value, got, row.want)
		}
	}
}

func TestFieldSet(t *testing.T) {
	s := &Shape{Fields: make([]Field, 130)}
	var set FieldSet
	for _, i := range []int{0, 63, 64, 129} {
		if set.Has(i) || !set.Add(i, s) || !set.Has(i) || set.Add(i, s) {
			t.Errorf("field %d", i)
		}
	}
	if set.Has(1) || set.Has(65) || set.Has(128) {
		t.Error("has what was not put in")
	}
}

func TestElements(t *testing.T) {
	s := Of(reflect.TypeFor[[]inner]())
	for _, n := range []int{0, 1, 1, 3, 3, 2, 0, 20, 1, 16, 16, 17, 40, 5} {
		var got []inner
		elements := s.Elements(reflect.ValueOf(&got).Elem())
		for i := range n {
			elem := elements.Next()
			if !elem.IsZero() {
				t.Fatalf("element %d of %d is %v before it was set", i, n, elem)
			}
			elem.Field(1).SetInt(int64(i + 1))
		}
		elements.Done()
		if got == nil || len(got) != n || elements.Len() != n {
			t.Fatalf("a list of %d is %#v", n, got)
		}
		for i := range got {
			if got[i].Depth != i+1 {
				t.Fatalf("a list of %d is %v", n, got)
			}
		}
		if next := s.Elements(reflect.ValueOf(&got).Elem()); n <= mostUsual && n > 0 && next.room != n {
			t.Errorf("after a list of %d there is room for %d", n, next.room)
		}
		if spare := got[n:cap(got)]; len(spare) > 2 || slices.ContainsFunc(spare, func(e inner) bool { return e != inner{} }) {
			t.Errorf("a list of %d has spare capacity %v", n, spare)
		}
	}
}
