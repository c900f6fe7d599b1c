// SPDX-License-Identifier: Apache-2.0

package encode_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Types that encode themselves, each in a different way.
type (
	byValue   struct{ A string }
	byPointer struct{ A string }
	textValue struct{ A string }
	textRef   struct{ A string }
	textWord  string
	refWord   string
	both      struct{ A string }
	fails     struct{ A string }
	textFails struct{ A string }
	lies      struct{ A string } // its method does not return JSON
	panics    struct{ A *string }
	onlyReads struct{ A string }
	list      []string
	counted   map[string]int
)

func (x byValue) MarshalJSON() ([]byte, error) {
	return []byte(" {\"by\" : \"value <&> \u2028\"}\n"), nil
}

func (x *byPointer) MarshalJSON() ([]byte, error) { return json.Marshal("pointer <" + x.A) }

func (x textValue) MarshalText() ([]byte, error) { return []byte("value <\xff" + x.A), nil }

func (x *textRef) MarshalText() ([]byte, error) { return []byte("pointer <\u2029" + x.A), nil }

func (x textWord) MarshalText() ([]byte, error) { return []byte("word " + x), nil }

func (x *refWord) MarshalText() ([]byte, error) { return []byte("pointer " + *x), nil }

func (x both) MarshalJSON() ([]byte, error) { return []byte(`"json"`), nil }
func (x both) MarshalText() ([]byte, error) { return []byte(`text`), nil }

func (x fails) MarshalJSON() ([]byte, error) { return nil, errors.New("fails <" + x.A) }

func (x *textFails) MarshalText() ([]byte, error) { return nil, errors.New("fails " + x.A) }

func (x lies) MarshalJSON() ([]byte, error) { return []byte(`{"a":` + x.A), nil }

func (x panics) MarshalJSON() ([]byte, error) { return []byte(*x.A), nil }

func (x *onlyReads) UnmarshalJSON([]byte) error { return nil }

func (x list) MarshalJSON() ([]byte, error) { return json.Marshal(len(x)) }

func (x *counted) MarshalJSON() ([]byte, error) { return json.Marshal(len(*x)) }

// Types with an IsZero method, for omitzero.
type (
	never    struct{ A int }
	always   string
	refZero  struct{ A int }
	zeroable interface{ IsZero() bool }
)

func (never) IsZero() bool      { return false }
func (always) IsZero() bool     { return true }
func (x *refZero) IsZero() bool { return x.A == 7 }

type zeros struct {
	Never     never            `json:"never,omitzero"`
	NeverRef  *never           `json:"neverRef,omitzero"`
	Always    always           `json:"always,omitzero"`
	Both      always           `json:"both,omitempty,omitzero"`
	Ref       refZero          `json:"ref,omitzero"`
	Refs      []refZero        `json:"refs,omitzero"`
	Interface zeroable         `json:"interface,omitzero"`
	Any       any              `json:"any,omitzero"`
	Empty     any              `json:"empty,omitempty"`
	Time      metav1.Time      `json:"time,omitzero"`
	TimeEmpty metav1.Time      `json:"timeEmpty,omitempty"`
	Array     [2]int           `json:"array,omitempty"`
	None      [0]int           `json:"none,omitempty"`
	Struct    struct{ A int }  `json:"struct,omitzero"`
	Float     float64          `json:"float,omitempty"`
	Bytes     []byte           `json:"bytes,omitempty"`
	BytesZero []byte           `json:"bytesZero,omitzero"`
	Map       map[string]never `json:"map,omitempty"`
}

type marshalers struct {
	Value     byValue
	ValueRef  *byValue
	Pointer   byPointer
	Ref       *byPointer
	Refs      []byPointer
	RefMap    map[string]byPointer
	Text      textValue
	TextRef   textRef
	Texts     map[string]*textRef
	Keys      map[textValue]textRef
	Words     map[textWord]refWord
	RefWords  map[refWord]textWord
	Both      both
	Marshaler json.Marshaler
	Texter    encoding.TextMarshaler
	Object    runtime.Object
	Any       any
	Deep      struct{ In struct{ Pointer byPointer } }
	Array     [2]byPointer
	Fixed     map[string][1]textRef
	List      list
	Lists     []list
	Counted   counted
	CountedIn struct{ C counted }
	Reads     onlyReads
	ReadsRef  *onlyReads `json:",omitempty"`
}

type failures struct {
	A      int
	Fails  *fails         `json:"fails,omitempty"`
	Text   *textFails     `json:"text,omitempty"`
	Lies   *lies          `json:"lies,omitempty"`
	Panics *panics        `json:"panics,omitempty"`
	InMap  map[string]any `json:"inMap,omitempty"`
	Values []fails        `json:"values,omitempty"`
	Texts  []textFails    `json:"texts,omitempty"`
	Float  float32        `json:"float,omitempty"`
	Chan   chan int       `json:"chan,omitzero"`
	Func   func()         `json:"func,omitempty"` // a nil func is not omitted
}

// Types that embed others.
type (
	inner struct {
		Name string `json:"name"`
		Once int
	}
	Embedded struct {
		Title string `json:"title"`
		Other string `json:"other,omitempty"`
	}
	embeds struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		inner
		Embedded
		Own string `json:"other"`
	}
	embedsRef struct {
		*Embedded
		Own int
	}
	embedsMarshaler struct {
		*byPointer
		B int
	}
	embedsInterface struct {
		json.Marshaler
		B int
	}
	embedsTime struct {
		metav1.Time
		B int
	}
	quoted struct {
		Int    int      `json:"int,string"`
		Text   string   `json:"text,string"`
		Float  *float64 `json:"float,string"`
		Plain  string
		Hidden string `json:"-"`
	}
	named struct {
		HTML  int `json:"<a&b>"`
		Space int `json:"a b"`
		É     int
	}
	node struct {
		Next *node           `json:"next,omitempty"`
		Kids []node          `json:"kids,omitempty"`
		By   map[string]node `json:"by,omitempty"`
		Any  any             `json:"any,omitempty"`
	}
	letter  byte
	letters []letter
)

// oddTypes are the types above, and other types that a field may have.
var oddTypes = []reflect.Type{
	reflect.TypeFor[zeros](), reflect.TypeFor[marshalers](), reflect.TypeFor[failures](), reflect.TypeFor[embeds](), reflect.TypeFor[embedsRef](),
	reflect.TypeFor[embedsMarshaler](), reflect.TypeFor[embedsInterface](), reflect.TypeFor[embedsTime](), reflect.TypeFor[quoted](),
	reflect.TypeFor[named](), reflect.TypeFor[node](), reflect.TypeFor[any](), reflect.TypeFor[json.Marshaler](), reflect.TypeFor[error](),
	reflect.TypeFor[letters](), reflect.TypeFor[[]int8](), reflect.TypeFor[[3]byte](), reflect.TypeFor[*[]byte](), reflect.TypeFor[**textRef](),
	reflect.TypeFor[map[int]string](), reflect.TypeFor[map[netip.Addr]int](), reflect.TypeFor[map[float64]int](), reflect.TypeFor[map[corev1.ResourceName]string](),
	reflect.TypeFor[map[textWord]int](), reflect.TypeFor[map[string]*resource.Quantity](), reflect.TypeFor[map[string]map[string]string](),
	reflect.TypeFor[labels.Set](), reflect.TypeFor[map[refWord]any](), reflect.TypeFor[complex128](), reflect.TypeFor[func()](), reflect.TypeFor[json.Number](),
	reflect.TypeFor[json.RawMessage](), reflect.TypeFor[float32](), reflect.TypeFor[struct{}](), reflect.TypeFor[uintptr](), reflect.TypeFor[time.Duration](),
	reflect.TypeFor[struct{ textRef }](), reflect.TypeFor[*struct{ byPointer }](), reflect.TypeFor[[]struct{ byPointer }](), reflect.TypeFor[panics](),
}

// insides are the types of the values that the filler stores in interfaces.
var insides = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[int64](),
	reflect.TypeFor[float64](), reflect.TypeFor[float32](), reflect.TypeFor[uint8](), reflect.TypeFor[[]any](), reflect.TypeFor[[]any](),
	reflect.TypeFor[map[string]any](), reflect.TypeFor[map[string]any](), reflect.TypeFor[map[string]string](), reflect.TypeFor[[]string](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[json.Number](), reflect.TypeFor[corev1.EnvVar](), reflect.TypeFor[*corev1.EnvVar](), reflect.TypeFor[corev1.ResourceList](),
	reflect.TypeFor[metav1.Time](), reflect.TypeFor[*metav1.Time](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[*intstr.IntOrString](),
	reflect.TypeFor[byValue](), reflect.TypeFor[*byValue](), reflect.TypeFor[byPointer](), reflect.TypeFor[*byPointer](), reflect.TypeFor[*textRef](),
	reflect.TypeFor[textValue](), reflect.TypeFor[textWord](), reflect.TypeFor[*refZero](), reflect.TypeFor[always](), reflect.TypeFor[list](),
	reflect.TypeFor[zeros](), reflect.TypeFor[*embedsMarshaler](), reflect.TypeFor[*any](), reflect.TypeFor[unstructured.Unstructured](), reflect.TypeFor[fmt.Stringer](),
}
