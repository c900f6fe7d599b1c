// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net"
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

// oddTypes returns types with properties that custom resources may have and built-in types lack. [randomType]
// has tags that go vet rejects.
func oddTypes() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[any](), reflect.TypeFor[[]any](), reflect.TypeFor[map[string]any](),
		reflect.TypeFor[[]map[string]any](), reflect.TypeFor[**widget](), reflect.TypeFor[*any](),
		reflect.TypeFor[unstructured.Unstructured](), reflect.TypeFor[unstructured.UnstructuredList](),
		reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[json.Number](),
		reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](),
		reflect.TypeFor[widget](), reflect.TypeFor[numbers](), reflect.TypeFor[texts](), reflect.TypeFor[quoted](),
		reflect.TypeFor[lists](), reflect.TypeFor[mappings](), reflect.TypeFor[badKeys](), reflect.TypeFor[pointers](),
		reflect.TypeFor[times](), reflect.TypeFor[anythings](), reflect.TypeFor[custom](), reflect.TypeFor[unfit](),
		reflect.TypeFor[embedsPlain](), reflect.TypeFor[embedsShadowed](), reflect.TypeFor[embedsPointer](), reflect.TypeFor[embedsTagged](),
		reflect.TypeFor[embedsHidden](), reflect.TypeFor[embedsShown](), reflect.TypeFor[embedsWord](), reflect.TypeFor[embedsWordRef](),
		reflect.TypeFor[embedsInterface](), reflect.TypeFor[embedsLost](), reflect.TypeFor[nameless](), reflect.TypeFor[shadows](), reflect.TypeFor[diamond](), reflect.TypeFor[diamondValue](), reflect.TypeFor[tagWins](),
		reflect.TypeFor[loop](), reflect.TypeFor[promoted](), reflect.TypeFor[promotedText](), reflect.TypeFor[ambiguous](),
		reflect.TypeFor[tree](), reflect.TypeFor[ping](), reflect.TypeFor[nest](), reflect.TypeFor[nestMap](),
		reflect.TypeFor[names](), reflect.TypeFor[podImages](), reflect.TypeFor[podMeta](), reflect.TypeFor[podPointers](),
	}
}

// A widget is a typical custom resource.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   widgetSpec    `json:"spec"`
	Status *widgetStatus `json:"status,omitempty"`
}

type widgetSpec struct {
	Replicas   *int32                     `json:"replicas,omitempty"`
	Port       intstr.IntOrString         `json:"port"`
	MaxSurge   *intstr.IntOrString        `json:"maxSurge,omitempty"`
	Size       resource.Quantity          `json:"size"`
	Least      *resource.Quantity         `json:"least,omitempty"`
	Limits     corev1.ResourceList        `json:"limits,omitempty"`
	Steps      []widgetStep               `json:"steps"`
	Selector   *metav1.LabelSelector      `json:"selector"`
	Template   runtime.RawExtension       `json:"template"`
	Extras     []runtime.RawExtension     `json:"extras,omitempty"`
	Values     map[string]json.RawMessage `json:"values,omitempty"`
	Containers []corev1.Container         `json:"containers,omitempty"`
	PodSpec    *corev1.PodTemplateSpec    `json:"podSpec,omitempty"`
	Window     window                     `json:"window,omitzero"`
	Free       map[string]any             `json:"free,omitempty"`
	Fields     *metav1.FieldsV1           `json:"fields,omitempty"`
	Phase      phase                      `json:"phase,omitempty"`
}

type widgetStep struct {
	Name    string            `json:"name"`
	Env     map[string]string `json:"env,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Timeout metav1.Duration   `json:"timeout,omitzero"`
	Next    *widgetStep       `json:"next,omitempty"`
	On      bool              `json:"on,omitempty"`
}

type widgetStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Observed   int64              `json:"observed,omitempty"`
}

type window struct {
	From metav1.Time       `json:"from,omitzero"`
	To   *metav1.Time      `json:"to,omitempty"`
	At   *metav1.MicroTime `json:"at,omitempty"`
}

type phase string

type (
	tinyInt int8
	flag    bool
	ratio   float32
	count   uint16
)

type numbers struct {
	Int     int
	Int8    int8
	Int16   int16
	Int32   int32
	Int64   int64
	Uint    uint
	Uint8   uint8
	Uint16  uint16
	Uint32  uint32
	Uint64  uint64
	Uintptr uintptr
	Float32 float32
	Float64 float64
	Bool    bool
	Tiny    tinyInt
	Flag    flag
	Ratio   ratio
	Count   *count
	Number  json.Number `json:",omitempty"`
	Many    []json.Number
	Any     any
}

type (
	letter  byte
	blob    []byte
	letters []letter
)

type texts struct {
	Plain   string
	Phase   phase
	Bytes   []byte
	Blob    blob
	Letters letters
	Signed  []int8
	Fixed   [4]byte
	Blobs   [][]byte
	Refs    []*[]byte
	ByName  map[string][]byte
	Raw     json.RawMessage
	RawRef  *json.RawMessage
	Number  *json.Number
}

// quoted has the tag option string on all types that support it.
type quoted struct {
	Int     int           `json:"int,string"`
	Int8    int8          `json:"int8,string,omitempty"`
	Ref     *int64        `json:"ref,string"`
	Uint    uint32        `json:",string"`
	Float   float64       `json:"float,omitempty,string"`
	Bool    bool          `json:"bool,string"`
	Text    string        `json:"text,string"`
	TextRef *string       `json:"textRef,string,omitempty"`
	Number  json.Number   `json:"number,string,omitempty"`
	Tiny    tinyInt       `json:"tiny,string"`
	For     time.Duration `json:"for,string"`
	Plain   int           `json:"plain"`
	Second  second        `json:"second,string"`
}

type lists struct {
	Words  []string             `json:"words"`
	Ints   []int32              `json:"ints,omitempty"`
	Bools  []bool               `json:"bools"`
	Parts  []part               `json:"parts,omitempty"`
	Refs   []*part              `json:"refs,omitempty"`
	Rows   [][]part             `json:"rows,omitempty"`
	Maps   []map[string]part    `json:"maps,omitempty"`
	Any    []any                `json:"any,omitempty"`
	Ref    *[]part              `json:"ref,omitempty"`
	None   [0]int               `json:"none"`
	Three  [3]int               `json:"three"`
	Pair   [2]part              `json:"pair"`
	RefTwo [2]*part             `json:"refTwo"`
	Grid   [2][2]string         `json:"grid"`
	AnyOne [1]any               `json:"anyOne"`
	Empty  []struct{}           `json:"empty"`
	Sizes  []resource.Quantity  `json:"sizes"`
	Times  []metav1.Time        `json:"times"`
	Ports  []intstr.IntOrString `json:"ports"`
}

type part struct {
	Kind   string            `json:"kind"`
	Weight int32             `json:"weight,omitempty"`
	On     *bool             `json:"on,omitempty"`
	Tags   []string          `json:"tags,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Pair   [2]int8           `json:"pair,omitzero"`
	Any    any               `json:"any,omitempty"`
	Part   *part             `json:"part,omitempty"`
}

type mappings struct {
	Strings  map[string]string             `json:"strings"`
	Phases   map[phase]phase               `json:"phases,omitempty"`
	Ints     map[int32]part                `json:"ints,omitempty"`
	Bytes    map[uint8]string              `json:"bytes,omitempty"`
	Tiny     map[tinyInt]int               `json:"tiny,omitempty"`
	Longs    map[uint64]int64              `json:"longs,omitempty"`
	Text     map[textKey]part              `json:"text,omitempty"`
	Addrs    map[netip.Addr]bool           `json:"addrs,omitempty"`
	Days     map[metav1.Time]string        `json:"days,omitempty"`
	Numbers  map[json.Number]int           `json:"numbers,omitempty"`
	Shouts   map[textString]textString     `json:"shouts,omitempty"`
	Parts    map[string]part               `json:"parts"`
	Refs     map[string]*part              `json:"refs,omitempty"`
	Groups   map[string][]part             `json:"groups,omitempty"`
	Headers  map[string][]string           `json:"headers,omitempty"`
	Nested   map[string]map[string]string  `json:"nested,omitempty"`
	Fixed    map[string][2]int             `json:"fixed,omitempty"`
	Sizes    map[string]resource.Quantity  `json:"sizes,omitempty"`
	SizeRefs map[string]*resource.Quantity `json:"sizeRefs,omitempty"`
	Set      labels.Set                    `json:"set,omitempty"`
	Marks    map[string]struct{}           `json:"marks,omitempty"`
	Ref      *map[string]int               `json:"ref,omitempty"`
	Any      map[string]any                `json:"any,omitempty"`
}

// badKeys has maps that do not decode from an object.
type badKeys struct {
	Floats  map[float64]int  `json:"floats,omitzero"`
	Bools   map[bool]int     `json:"bools,omitzero"`
	Structs map[part2]int    `json:"structs,omitzero"`
	Anys    map[error]int    `json:"anys,omitzero"`
	Refs    map[*textKey]int `json:"refs,omitzero"`
	Good    map[string]int   `json:"good"`
}

type part2 struct{ A, B int }

type pointers struct {
	One     *string                       `json:"one"`
	Two     **int                         `json:"two,omitempty"`
	Three   ***part                       `json:"three,omitempty"`
	List    *[]*string                    `json:"list,omitempty"`
	Map     *map[string]*map[string]*bool `json:"map,omitempty"`
	Any     *any                          `json:"any,omitempty"`
	Size    **resource.Quantity           `json:"size,omitempty"`
	Time    **metav1.Time                 `json:"time,omitempty"`
	Raw     **json.RawMessage             `json:"raw,omitempty"`
	Array   *[2]int                       `json:"array,omitempty"`
	Text    **textKey                     `json:"text,omitempty"`
	Journal **jsonCalls                   `json:"jsonCalls,omitempty"`
}

type times struct {
	Time     metav1.Time                 `json:"time"`
	Micro    metav1.MicroTime            `json:"micro"`
	Duration metav1.Duration             `json:"duration"`
	Go       time.Time                   `json:"go"`
	GoRef    *time.Time                  `json:"goRef,omitempty"`
	GoLong   time.Duration               `json:"goLong"`
	Refs     []*metav1.Time              `json:"refs,omitempty"`
	ByName   map[string]metav1.MicroTime `json:"byName,omitempty"`
	Longs    []metav1.Duration           `json:"longs,omitempty"`
	Month    time.Month                  `json:"month"`
}

// anything is a named interface without methods.
type anything interface{}

type anythings struct {
	Any     any            `json:"any"`
	Named   anything       `json:"named"`
	List    []any          `json:"list"`
	Map     map[string]any `json:"map"`
	Deep    map[string][]map[string]any
	Object  runtime.Object `json:"object,omitempty"`
	Printer fmt.Stringer   `json:"printer,omitempty"`
	Err     error          `json:"err,omitempty"`
}

type custom struct {
	Second   second                `json:"second"`
	Seconds  []*second             `json:"seconds,omitempty"`
	Both     both                  `json:"both"`
	Shout    textString            `json:"textString"`
	Key      textKey               `json:"key"`
	Journal  jsonCalls             `json:"jsonCalls"`
	Journals map[string]jsonCalls  `json:"journals,omitempty"`
	Ref      *jsonCalls            `json:"ref,omitempty"`
	Heard    textCalls             `json:"textCalls"`
	HeardRef **textCalls           `json:"heardRef,omitempty"`
	HeardAll []textCalls           `json:"heardAll,omitempty"`
	Value    valueReceiver         `json:"value"`
	ValueRef *valueReceiver        `json:"valueRef,omitempty"`
	Default  defaulted             `json:"default"`
	IP       net.IP                `json:"ip"`
	Addr     netip.Addr            `json:"addr"`
	Big      *big.Int              `json:"big,omitempty"`
	Switch   []interface{ Bool() } `json:"switch,omitempty"`
}

// unfit has fields that accept only null, and fields that a decoder ignores.
type unfit struct {
	Chan    chan int     `json:"chan,omitzero"`
	Func    func()       `json:"func,omitzero"`
	Complex complex128   `json:"complex,omitzero"`
	Chans   []chan int   `json:"chans,omitempty"`
	Ref     *chan int    `json:"ref,omitempty"`
	Hidden  string       `json:"-"`
	private string       //nolint:unused // that nothing sets it is its purpose
	_       [0]chan bool // also ignored
	Last    string       `json:"last"`
}
