// SPDX-License-Identifier: Apache-2.0

package encode_test

import (
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/decode/decodetest"
)

// The environment variables with the number of random values and the first seed.
const (
	casesVariable = "ADMITKIT_ENCODE_CASES"
	seedVariable  = "ADMITKIT_ENCODE_SEED"
)

// TestAppendAgreesWithEncodingJSON compares Append with encoding/json on random values of built-in types, odd types and
// generated types. ADMITKIT_ENCODE_CASES sets the number of values, ADMITKIT_ENCODE_SEED the first seed.
func TestAppendAgreesWithEncodingJSON(t *testing.T) {
	cases, long := number(t, casesVariable, 4000)
	first, _ := number(t, seedVariable, 1)
	start, encoded, size := time.Now(), 0, 0
	types := map[reflect.Type]bool{}
	for i := range cases {
		seed := first + i
		v := randomValue(seed)
		if err := compareEverywhere(v); err != nil {
			t.Fatalf("%s=%d %s=1 reproduces: %s: %v", seedVariable, seed, casesVariable, v.Type(), err)
		}
		types[v.Type()] = true
		if text, err := oracle(v); err == nil {
			encoded++
			size += len(text)
		}
		if step := max(1, cases/50); long && (i+1)%step == 0 {
			fmt.Fprintf(os.Stderr, "encode: %d of %d values, %s\n", i+1, cases, time.Since(start).Round(time.Second))
		}
	}
	t.Logf("%d values of %d types, %d encode, to %d bytes each", cases, len(types), encoded, size/max(1, encoded))
	if cases >= 1000 && int64(encoded)*2 < cases {
		t.Errorf("only %d of %d values can be encoded: the others only compare errors", encoded, cases)
	}
}

func number(t *testing.T, variable string, fallback int64) (n int64, set bool) {
	t.Helper()
	text, set := os.LookupEnv(variable)
	if !set {
		return fallback, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n, true
}

// randomValue returns an addressable value that the seed determines. It is a decoded document, which may be decoded
// only in part, or a value from the filler.
func randomValue(seed int64) reflect.Value {
	r := rand.New(rand.NewSource(seed))
	if seed%3 == 0 {
		c := decodetest.NewCase(seed)
		v := reflect.New(c.Type)
		_, _ = guard(func() ([]byte, error) { return nil, kjson.UnmarshalCaseSensitivePreserveInts(c.Doc, v.Interface()) })
		return v.Elem()
	}
	t := oddTypes[int(uint64(seed)>>1)%len(oddTypes)]
	if r.Intn(2) == 0 {
		t = decodetest.TypeFor(uint16(r.Intn(1 << 16)))
	}
	v := reflect.New(t).Elem()
	f := filler{Rand: r, left: 20 + r.Intn(150), bad: r.Intn(4) == 0}
	f.fill(v)
	return v
}

// TestScalarsAgree compares Append with encoding/json on strings and numbers that are hard to encode.
func TestScalarsAgree(t *testing.T) {
	check := func(x any) {
		t.Helper()
		v := reflect.New(reflect.TypeOf(x)).Elem()
		v.Set(reflect.ValueOf(x))
		if err := compareEverywhere(v); err != nil {
			t.Errorf("%T %#v: %v", x, x, err)
		}
	}
	for _, f := range floats {
		check(f)
		check(-f)
		check(float32(f))
		check(map[string]any{"f": f})
	}
	for _, a := range texts {
		check(a)
		for _, b := range texts {
			check(map[textWord]string{textWord(a): b})
			check(map[string]string{a: b, b: a, a + b: ""})
		}
	}
	for i := range 256 { // each byte at each position in a word of eight bytes
		for at := range 9 {
			check(strings.Repeat("!", at) + string([]byte{byte(i)}) + strings.Repeat("~", 9-at))
		}
	}
}

// TestDeepValuesAgree compares Append with encoding/json on values that are nested to about the depth at which
// encoding/json begins to check for cycles, and deeper.
func TestDeepValuesAgree(t *testing.T) {
	for _, depth := range []int{10, 999, 1000, 1001, 1002, 2100} {
		chain, loose := &node{}, any("x")
		kids, by := node{}, node{}
		for i := range depth {
			chain = &node{Next: chain}
			kids, by = node{Kids: []node{kids}}, node{By: map[string]node{"k": by}}
			if i%2 == 0 {
				loose = []any{loose}
			} else {
				loose = map[string]any{"k": loose}
			}
		}
		for _, x := range []any{chain, &kids, &by, &loose, &node{Any: loose, Next: chain}} {
			if err := compare(reflect.ValueOf(x).Elem()); err != nil {
				t.Errorf("%T of depth %d: %v", x, depth, err)
			}
		}
	}
}

// TestCyclesAreErrors encodes a cycle from each of its values and expects the error of encoding/json.
func TestCyclesAreErrors(t *testing.T) {
	ring := &node{}
	ring.Next = &node{Any: &node{Kids: []node{{Next: ring}}}}
	loose := map[string]any{}
	loose["list"] = []any{1, loose}
	list := []any{nil}
	list[0] = &list
	branching := map[string]any{}
	branching["a"], branching["b"] = branching, branching
	for _, x := range []any{ring, &node{Next: ring}, &loose, &list, &branching, &node{Any: loose}, &node{Any: list, Next: ring}} {
		v := reflect.ValueOf(x).Elem()
		if _, err := oracle(v); err == nil || !strings.Contains(err.Error(), "cycle") {
			t.Fatalf("%T is not a cycle: %v", x, err)
		}
		if err := compare(v); err != nil {
			t.Errorf("%T: %v", x, err)
		}
	}
}
