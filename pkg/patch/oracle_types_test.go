// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"math/rand"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// A gadget is a custom resource with kinds of fields that no built-in type has.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   gadgetSpec    `json:"spec"`
	Status *gadgetStatus `json:"status,omitempty"`
}

type gadgetSpec struct {
	Common
	*Extra `json:",inline"`

	// Lists without a merge key, with and without omitempty, and behind pointers.
	Parts     []part   `json:"parts"`
	PartRefs  []*part  `json:"partRefs,omitempty"`
	Rows      [][]part `json:"rows,omitempty"`
	Optional  *[]part  `json:"optional,omitempty"`
	Explicit  *[]part  `json:"explicit"`
	Pair      [2]part  `json:"pair"`
	Words     []string `json:"words,omitempty"`
	Blobs     [][]byte `json:"blobs,omitempty"`
	PortNames []intstr.IntOrString

	// Lists with a merge key: a string from a tag, a number from a tag, and the default, name.
	Tagged []tagged `json:"tagged,omitempty" patchStrategy:"merge" patchMergeKey:"id"`
	Ports  []tagged `json:"ports" patchStrategy:"merge" patchMergeKey:"number"`
	Named  []named  `json:"named,omitempty"`

	ByNumber map[int32]part      `json:"byNumber,omitempty"`
	ByText   map[textKey]part    `json:"byText,omitempty"`
	ByName   map[string]*part    `json:"byName"`
	Groups   map[string][]part   `json:"groups,omitempty"`
	Limits   corev1.ResourceList `json:"limits,omitempty"`
	Free     map[string]any      `json:"free,omitempty"`

	Window   window                 `json:"window,omitzero"`
	Always   part                   `json:"always"`
	Selector *metav1.LabelSelector  `json:"selector"`
	Template runtime.RawExtension   `json:"template"`
	Extras   []runtime.RawExtension `json:"extras,omitempty"`
	Size     resource.Quantity      `json:"size"`
	Least    *resource.Quantity     `json:"least,omitempty"`
	Quoted   int64                  `json:"quoted,string,omitempty"`
	Blob     []byte                 `json:"blob"`
	Hidden   string                 `json:"-"`
}

// Common and Extra are embedded, so their members are members of the spec.
type Common struct {
	Replicas *int32             `json:"replicas,omitempty"`
	Port     intstr.IntOrString `json:"port"`
	Paused   bool               `json:"paused,omitempty"`
}

type Extra struct {
	Deadline metav1.MicroTime `json:"deadline,omitzero"`
	Grace    metav1.Duration  `json:"grace,omitzero"`
	More     []part           `json:"more,omitempty"`
}

type part struct {
	Kind   string             `json:"kind"`
	Weight int32              `json:"weight,omitempty"`
	Ratio  float64            `json:"ratio,omitempty"`
	On     *bool              `json:"on,omitempty"`
	Tags   []string           `json:"tags,omitempty"`
	Labels map[string]string  `json:"labels,omitempty"`
	Inner  *inner             `json:"inner,omitempty"`
	Window window             `json:"window,omitzero"`
	Many   []inner            `json:"many,omitempty"`
	Target intstr.IntOrString `json:"target"`
}

type inner struct {
	A string `json:"a,omitempty"`
	B int64  `json:"b,omitempty"`
	C *inner `json:"c,omitempty"`
}

type window struct {
	From metav1.Time  `json:"from,omitzero"`
	To   *metav1.Time `json:"to,omitempty"`
	Zone string       `json:"zone,omitempty"`
}

type tagged struct {
	ID     string `json:"id"`
	Number int32  `json:"number"`
	Part   part   `json:"part"`
	Items  []part `json:"items,omitempty"`
}

type named struct {
	Name string `json:"name"`
	Part *part  `json:"part,omitempty"`
}

type gadgetStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Observed   int64              `json:"observed,omitempty"`
	Windows    []window           `json:"windows,omitempty"`
}

// A textKey is a map key with an encoding of its own.
type textKey struct{ Group, Item string }

func (k textKey) MarshalText() ([]byte, error) { return []byte(k.Group + "/" + k.Item), nil }

func (k *textKey) UnmarshalText(text []byte) error {
	k.Group, k.Item, _ = strings.Cut(string(text), "/")
	return nil
}

// newFiller returns a filler of random values. They survive encoding to JSON and decoding, so that only a wrong patch
// can cause a difference. If few is true, it uses few different values, so that lists get equal and almost equal
// elements, and duplicate merge keys.
func newFiller(seed int64, nilChance float64, few bool) *randfill.Filler {
	f := randfill.NewWithSeed(seed).NilChance(nilChance).NumElements(0, 4)
	if few {
		f.NumElements(0, 6).Funcs(
			func(s *string, c randfill.Continue) { *s = string("abc"[c.Intn(3)]) },
			func(n *int32, c randfill.Continue) { *n = int32(c.Intn(3)) },
			func(n *int64, c randfill.Continue) { *n = int64(c.Intn(3)) },
			func(n *float64, c randfill.Continue) { *n = float64(c.Intn(3)) },
		)
	} else {
		f.Funcs(func(s *string, c randfill.Continue) { *s = randomString(c.Rand) })
	}
	schemas := 20 // at most, so that an object does not grow forever
	return f.Funcs(
		func(k *textKey, c randfill.Continue) {
			k.Group, k.Item = "g"+strconv.Itoa(c.Intn(3)), randomString(c.Rand)
		},
		func(q *resource.Quantity, c randfill.Continue) { *q = randomQuantity(c.Rand) },
		func(t *metav1.Time, c randfill.Continue) {
			if *t = (metav1.Time{}); c.Intn(8) > 0 {
				*t = metav1.Unix(int64(c.Uint32()), 0)
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) {
			if *t = (metav1.MicroTime{}); c.Intn(4) > 0 {
				*t = metav1.NewMicroTime(time.Unix(int64(c.Uint32()), int64(c.Intn(1e6))*1000))
			}
		},
		func(d *metav1.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Int63()) },
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(int32(c.Intn(4))); c.Bool() {
				*v = intstr.FromString(randomString(c.Rand))
			}
		},
		func(e *runtime.RawExtension, c randfill.Continue) {
			if *e = (runtime.RawExtension{}); c.Intn(4) > 0 {
				e.Raw = mustEncode(randomObject(c.Rand, 3))
			}
		},
		func(e *runtime.Object, _ randfill.Continue) { *e = nil },
		func(j *apiextensionsv1.JSON, c randfill.Continue) { j.Raw = mustEncode(randomJSON(c.Rand, 2)) },
		func(s *apiextensionsv1.JSONSchemaProps, c randfill.Continue) {
			if schemas > 0 && c.Intn(8) == 0 { // the type contains itself many times
				schemas--
				c.FillNoCustom(s)
			}
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawBytes(mustEncode(randomObject(c.Rand, 2))) },
		func(v *any, c randfill.Continue) { *v = randomJSON(c.Rand, 3) },
	)
}

// oddStrings are names and values that need an escape in a pointer or in JSON, or that look like an index, null or a
// merge key.
var oddStrings = []string{
	"", "a/b", "a~b", "~1", "~0/", "/", "0", "01", "-", "-1", "null", "<b>&", "é€😀", "\u2028", `"\`, "a b", "\n", "name",
}

func randomString(r *rand.Rand) string {
	if r.Intn(6) == 0 {
		return oddStrings[r.Intn(len(oddStrings))]
	}
	b := make([]byte, 1+r.Intn(5))
	for i := range b {
		b[i] = byte('a' + r.Intn(6))
	}
	return string(b)
}

func randomQuantity(r *rand.Rand) resource.Quantity {
	n := int64(r.Intn(2000)) - 100
	switch r.Intn(5) {
	case 0:
		return *resource.NewMilliQuantity(n, resource.DecimalSI)
	case 1:
		return *resource.NewQuantity(n<<20, resource.BinarySI)
	case 2:
		return *resource.NewQuantity(n*1000, resource.DecimalExponent)
	case 3:
		return *resource.NewScaledQuantity(n, resource.Nano)
	default:
		return *resource.NewQuantity(n, resource.DecimalSI)
	}
}

func randomObject(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range r.Intn(4) {
		m[randomString(r)] = randomJSON(r, depth-1)
	}
	return m
}

func randomJSON(r *rand.Rand, depth int) any {
	kind := r.Intn(8)
	switch {
	case kind == 0:
		return nil
	case kind == 1:
		return r.Intn(2) == 0
	case kind == 2:
		return int64(r.Uint64())
	case kind == 3:
		return float64(r.Intn(100)) + 0.5
	case kind < 6 || depth == 0:
		return randomString(r)
	case kind == 6:
		return randomObject(r, depth)
	}
	list := []any{}
	for range r.Intn(4) {
		list = append(list, randomJSON(r, depth-1))
	}
	return list
}

func mustEncode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
