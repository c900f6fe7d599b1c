// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

// filled returns the encoding of a value of type t that apimachinery's fuzzers filled, with its members in
// the order of the fields. It returns nil if the fuzzers or the encoder fail or panic, as they do for some
// odd types.
func filled(t reflect.Type, r *rand.Rand) (text []byte) {
	defer func() {
		if recover() != nil {
			text = nil
		}
	}()
	f := randfill.NewWithSeed(r.Int63()).MaxDepth(40)
	f.NilChance([]float64{0.5, 0.75, 0.9, 1}[r.Intn(4)]).NumElements(0, 1+r.Intn(3))
	v := reflect.New(t)
	f.Funcs(metafuzzer.Funcs(scheme.Codecs)...).Funcs(fillFuncs...).Fill(v.Interface())
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return nil
	}
	return text
}

// fillFuncs replace the functions of apimachinery's fuzzers that avoid values that are hard to decode. They
// also fill types for which the fuzzers have no function.
var fillFuncs = []any{
	func(s *string, c randfill.Continue) { *s = generator{c.Rand}.string() },
	func(m *metav1.TypeMeta, _ randfill.Continue) { m.Kind, m.APIVersion = "Kind", "group/v1" },
	func(q *resource.Quantity, c randfill.Continue) { *q = randomQuantity(c.Rand) },
	func(t *time.Time, c randfill.Continue) { *t = randomTime(c.Rand) },
	func(t *metav1.Time, c randfill.Continue) { t.Time = randomTime(c.Rand) },
	func(t *metav1.MicroTime, c randfill.Continue) { t.Time = randomTime(c.Rand) },
	func(e *runtime.RawExtension, c randfill.Continue) { e.Raw = randomJSON(c.Rand) },
	func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawBytes(randomJSON(c.Rand)) },
	func(m *json.RawMessage, c randfill.Continue) { *m = randomJSON(c.Rand) },
	func(j *apiextensionsv1.JSON, c randfill.Continue) { j.Raw = randomJSON(c.Rand) },
	func(n *json.Number, c randfill.Continue) { *n = json.Number(fmt.Sprint(c.Int63())) },
	func(v *any, c randfill.Continue) { _ = json.Unmarshal(randomJSON(c.Rand), v) },
	func(v *anything, c randfill.Continue) { _ = json.Unmarshal(randomJSON(c.Rand), v) },
	func(s *apiextensionsv1.JSONSchemaProps, c randfill.Continue) { fillSometimes(s, c) },
	func(t *tree, c randfill.Continue) { fillSometimes(t, c) },
	func(*nest, randfill.Continue) {},
	func(*nestMap, randfill.Continue) {},

	// Interfaces that can only be nil.
	func(*runtime.Object, randfill.Continue) {},
	func(*fmt.Stringer, randfill.Continue) {},
	func(*error, randfill.Continue) {},
	func(*interface{ Bool() }, randfill.Continue) {},
	func(*chan int, randfill.Continue) {},
	func(*func(), randfill.Continue) {},
}

// fillSometimes leaves most values of a recursive type empty, so that the result stays small.
func fillSometimes[T any](v *T, c randfill.Continue) {
	if c.Intn(8) == 0 {
		c.FillNoCustom(v)
	}
}

func randomQuantity(r *rand.Rand) resource.Quantity {
	n := r.Int63() >> r.Intn(62)
	switch r.Intn(6) {
	case 0:
		return *resource.NewMilliQuantity(-n, resource.DecimalSI)
	case 1:
		return *resource.NewQuantity(n>>12<<10, resource.BinarySI)
	case 2:
		return *resource.NewQuantity(n, resource.DecimalExponent)
	case 3:
		return *resource.NewScaledQuantity(n, resource.Nano)
	case 4:
		return resource.MustParse(strings.Repeat("9", 1+r.Intn(30)) + []string{"", "m", "Ki", "e3", ".5"}[r.Intn(5)])
	default:
		return *resource.NewQuantity(int64(r.Intn(2000)), resource.DecimalSI)
	}
}

// randomTime returns a time that JSON can represent.
func randomTime(r *rand.Rand) time.Time {
	if r.Intn(6) == 0 {
		return time.Time{}
	}
	t := time.Unix(int64(r.Uint32()), r.Int63n(1e9))
	return t.In([]*time.Location{time.UTC, time.FixedZone("", 7200), time.FixedZone("", -12600)}[r.Intn(3)])
}

func randomJSON(r *rand.Rand) []byte { return []byte(generator{r}.json(0).String()) }
