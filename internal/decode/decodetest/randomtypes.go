// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand"
	"net"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// randomType generates a struct type. Its tags may be invalid in source code: duplicate names, malformed tags, and tags on
// unexported fields.
func randomType(seed int64) reflect.Type {
	r := rand.New(rand.NewSource(seed))
	if r.Intn(12) == 0 {
		return wideType(r)
	}
	return (&typeMaker{r: r}).structType(3)
}

type typeMaker struct{ r *rand.Rand }

func (m *typeMaker) oneOf(types []reflect.Type) reflect.Type { return types[m.r.Intn(len(types))] }

// structType generates a struct with at most one odd field. A decoder may leave a struct with an odd field to a
// library, and would then never read a second odd field itself.
func (m *typeMaker) structType(depth int) reflect.Type {
	fields := make([]reflect.StructField, m.r.Intn(9))
	for i := range fields {
		fields[i] = reflect.StructField{Name: "F" + strconv.Itoa(i), Type: m.anyType(depth - 1), Tag: m.tag(i)}
	}
	if len(fields) > 1 && m.r.Intn(3) == 0 {
		m.embed(&fields[0], plainEmbeddable)
	}
	if len(fields) > 1 && m.r.Intn(2) == 0 {
		m.makeOdd(&fields[1+m.r.Intn(len(fields)-1)])
	}
	return reflect.StructOf(fields)
}

func (m *typeMaker) makeOdd(f *reflect.StructField) {
	switch m.r.Intn(6) {
	case 0:
		m.embed(f, embeddable)
	case 1:
		f.Name, f.PkgPath = "f"+f.Name, "github.com/admitkit/admitkit/internal/decode/decodetest"
	case 2:
		f.Tag = `json:"n1"` // another field may have the same name
	case 3:
		f.Tag = `json:"quoted,omitempty,string"`
	case 4:
		f.Type = m.oneOf(oddLeafTypes)
	default:
		f.Tag = reflect.StructTag(oddTags[m.r.Intn(len(oddTags))])
	}
}

func (m *typeMaker) embed(f *reflect.StructField, types []reflect.Type) {
	t := m.oneOf(types)
	f.Name, f.Type, f.PkgPath, f.Anonymous = indirect(t).Name(), t, "", true
	if m.r.Intn(3) > 0 {
		f.Tag = ""
	}
}

// wideType has more than 64 fields, with similar names that may have the same hash.
func wideType(r *rand.Rand) reflect.Type {
	fields := make([]reflect.StructField, 60+r.Intn(90))
	formats := []string{"commonHead%03dcommonTail", "%03dcommonTail", "commonHead%03d", "n%d", "é%d"}
	formats = formats[:4+r.Intn(2)]
	for i := range fields {
		name := formats[r.Intn(len(formats))]
		fields[i] = reflect.StructField{
			Name: "F" + strconv.Itoa(i),
			Type: leafTypes[r.Intn(len(leafTypes))],
			Tag:  reflect.StructTag(`json:"` + fmt.Sprintf(name, i) + `"`),
		}
	}
	return reflect.StructOf(fields)
}

// tag returns an ordinary tag. Names are unique within a struct.
func (m *typeMaker) tag(i int) reflect.StructTag {
	name := "n" + strconv.Itoa(i)
	switch m.r.Intn(8) {
	case 0:
		name = "" // the name of the field counts
	case 1:
		name = []string{"kind", "name", "metadata", "items", "N1", "a.b/c", "$ref", "x-k8s", "n"}[i%9]
	}
	var options strings.Builder
	for _, option := range []string{",omitempty", ",omitzero", ",inline"} {
		if m.r.Intn(4) == 0 {
			options.WriteString(option)
		}
	}
	return reflect.StructTag("json:" + strconv.Quote(name+options.String()))
}

var oddTags = []string{
	``, `json`, `json:`, `json:a`, `json:"a`, `json:""`, `json:"-"`, `json:"-,"`, `json:","`, `json:",,"`,
	`json:"g, omitempty"`, `json:"g,omitempty,"`, `json:"'q'"`, `json:"\"q\""`, `json:"a\\b"`, `json:"a,b"`,
	`json:"a\tb"`, `json:"\u00e9"`, `json:"\ufffd"`, `json:"\xff"`, `json:"a"json:"b"`, `yaml:"y" json:"a"`,
	`json:"a",json:"b"`, `json: "a"`, `json:"a,String"`, `json:"a, string"`, `json:"string"`, `json:"omitempty"`,
	`json:",string,string"`, `json:"!#$%&()*+-./:;<=>?@[]^_{|}~ "`, `JSON:"b"`, `json:"日本"`, `json:"a:b"`,
}

func (m *typeMaker) anyType(depth int) reflect.Type {
	if depth <= 0 {
		return m.oneOf(leafTypes)
	}
	switch m.r.Intn(14) {
	case 0, 1:
		return reflect.PointerTo(m.anyType(depth))
	case 2, 3:
		return reflect.SliceOf(m.anyType(depth - 1))
	case 4:
		return reflect.ArrayOf(m.r.Intn(4), m.anyType(depth-1))
	case 5, 6:
		return reflect.MapOf(m.oneOf(keyTypes), m.anyType(depth-1))
	case 7, 8:
		return m.structType(depth)
	default:
		return m.oneOf(leafTypes)
	}
}

// The embeddable types have no methods, because reflect requires that of embedded fields.
var (
	plainEmbeddable = []reflect.Type{
		reflect.TypeFor[Common](), reflect.TypeFor[Left](), reflect.TypeFor[Deeper](), reflect.TypeFor[Base](),
		reflect.TypeFor[Named](), reflect.TypeFor[West](),
	}
	embeddable = []reflect.Type{
		reflect.TypeFor[*Shared](), reflect.TypeFor[Extra](), reflect.TypeFor[*Extra](),
		reflect.TypeFor[Right](), reflect.TypeFor[*Right](), reflect.TypeFor[*Loop](),
		reflect.TypeFor[Word](), reflect.TypeFor[*Word](), reflect.TypeFor[Words](), reflect.TypeFor[*NamedRef](),
	}
)

var leafTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
	reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](),
	reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[uintptr](), reflect.TypeFor[float32](),
	reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[any](), reflect.TypeFor[any](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[blob](), reflect.TypeFor[letters](), reflect.TypeFor[phase](),
	reflect.TypeFor[tinyInt](), reflect.TypeFor[flag](), reflect.TypeFor[ratio](), reflect.TypeFor[*string](), reflect.TypeFor[*int32](),
	reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](),
	reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](),
	reflect.TypeFor[resource.Quantity](), reflect.TypeFor[*resource.Quantity](), reflect.TypeFor[corev1.ResourceList](),
	reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1](),
	reflect.TypeFor[metav1.LabelSelector](), reflect.TypeFor[metav1.OwnerReference](), reflect.TypeFor[corev1.EnvVar](),
	reflect.TypeFor[map[string]string](), reflect.TypeFor[[]string](), reflect.TypeFor[map[string]any](), reflect.TypeFor[[]any](),
	reflect.TypeFor[part](), reflect.TypeFor[*part](), reflect.TypeFor[struct{}](), reflect.TypeFor[textKey](), reflect.TypeFor[second](),
	reflect.TypeFor[both](), reflect.TypeFor[jsonCalls](), reflect.TypeFor[textCalls](), reflect.TypeFor[valueReceiver](), reflect.TypeFor[textString](),
	reflect.TypeFor[defaulted](), reflect.TypeFor[tree](), reflect.TypeFor[names](), reflect.TypeFor[promoted](),
	reflect.TypeFor[anything](), reflect.TypeFor[labels.Set](), reflect.TypeFor[net.IP](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[*big.Int](),
}

var oddLeafTypes = []reflect.Type{
	reflect.TypeFor[complex64](), reflect.TypeFor[chan int](), reflect.TypeFor[func()](), reflect.TypeFor[fmt.Stringer](),
	reflect.TypeFor[runtime.Object](), reflect.TypeFor[error](), reflect.TypeFor[interface{ Bool() }](),
	reflect.TypeFor[embedsLost](), reflect.TypeFor[nameless](), reflect.TypeFor[embedsShown](), reflect.TypeFor[[2]int](),
	reflect.TypeFor[unfit](), reflect.TypeFor[map[string]struct{ metav1.Time }](),
	reflect.TypeFor[[]struct{ textKey }](), reflect.TypeFor[*struct{ jsonCalls }](), reflect.TypeFor[struct{ second }](),
}

var keyTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[phase](), reflect.TypeFor[int](), reflect.TypeFor[int8](),
	reflect.TypeFor[tinyInt](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](), reflect.TypeFor[uintptr](),
	reflect.TypeFor[textKey](), reflect.TypeFor[second](), reflect.TypeFor[both](), reflect.TypeFor[json.Number](), reflect.TypeFor[textString](),
	reflect.TypeFor[float64](), reflect.TypeFor[bool](), reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[[2]string](),
	reflect.TypeFor[metav1.Time](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[*textKey](),
}
