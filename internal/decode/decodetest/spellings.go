// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"encoding/json"
	"math/big"
	"math/rand"
	"net"
	"net/netip"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A spelling lists JSON texts for a type with its own decoder. Invalid texts are rare, because one of them
// makes the whole document invalid and the other values useless.
type spelling struct{ good, bad []string }

func (s spelling) pick(r *rand.Rand) *node {
	list := s.good
	if len(s.bad) > 0 && r.Intn(40) == 0 {
		list = s.bad
	}
	return parse([]byte(list[r.Intn(len(list))]), nil)
}

var spellings = map[reflect.Type]spelling{
	reflect.TypeFor[resource.Quantity](): {
		good: []string{
			`"0"`, `"1"`, `"100m"`, `"1.5Gi"`, `"12e6"`, `"1E3"`, `"-3k"`, `"0.1"`, `"1Ki"`, `"128Mi"`, `"12345678901234567890"`, `"+5"`,
			`"1.23456789n"`, `"0.00000000001"`, `"999999999999999999999999Ei"`, `" 7 "`, `"1u"`, `"007"`, `".5"`, `"5."`, `"-0"`, `"1.0"`,
			`"9223372036854775807"`, `"9223372036854775808"`, `"1e-3"`, `"1000m"`, `"1024"`, `"0.5Ki"`, `"100000000n"`, `"0m"`, `"0Gi"`,
			`7`, `-7`, `1.5`, `1e3`, `0`, `-0`, `12345678901234567890`, `null`, `"1 "`, `"1E"`, `"1P"`, `"00.50"`, `"1e18"`, `"-.5"`,
		},
		bad: []string{`""`, `"."`, `"1Gib"`, `"\u0031"`, `"1 k"`, `"--1"`, `"1e"`, `"é"`, `"m"`, `{}`, `[]`, `true`, `"1.2.3"`, `"0x1"`, `"1\n"`},
	},
	reflect.TypeFor[metav1.Time]():      timeSpelling,
	reflect.TypeFor[metav1.MicroTime](): timeSpelling,
	reflect.TypeFor[time.Time]():        timeSpelling,
	reflect.TypeFor[metav1.Duration](): {
		good: []string{
			`"1s"`, `"0"`, `"0s"`, `"1h2m3.5s"`, `"-1.5h"`, `"5us"`, `"5µs"`, `"5\u00b5s"`, `"100ms"`, `".5s"`, `"9999h"`, `"+2m"`, `"1ns"`,
		},
		bad: []string{`"1d"`, `""`, `"1"`, `1`, `null`, `"9999999h"`, `" 1s"`, `{}`},
	},
	reflect.TypeFor[intstr.IntOrString](): {
		good: []string{`0`, `80`, `-1`, `2147483647`, `"http"`, `"25%"`, `""`, `"80"`, `"\u0061"`, `"é"`, `null`},
		bad:  []string{`2147483648`, `1.0`, `1e1`, `true`, `{}`, `[1]`, `-0`},
	},
	reflect.TypeFor[runtime.RawExtension](): {
		good: []string{
			`null`, `{}`, `{"kind":"Pod","a":[1,-0,1.0,{"b":null}]}`, `{"b":1,"a":2,"b":3}`, `{"\u0061":"\u00e9\ud800"}`, `1`, `"x"`, `[]`, `false`,
		},
	},
	reflect.TypeFor[json.Number](): {
		good: []string{`0`, `1.50`, `-0`, `1e400`, `"1"`, `"1.5e-3"`, `123456789012345678901234567890`, `null`, `"-0.0E+1"`},
		bad:  []string{`""`, `"x"`, `"01"`, `"-"`, `" 1"`, `"1."`, `"+1"`, `"\u0031"`},
	},
	reflect.TypeFor[second](): {good: []string{`1`, `"2"`, `-3`, `null`}, bad: []string{`"x"`, `1.5`, `""`}},
	reflect.TypeFor[textKey](): {
		good: []string{`"a/b"`, `"/"`, `"é/\u0061"`, `"a/b/c"`, `null`},
		bad:  []string{`"none"`, `""`, `1`, `{}`},
	},
	reflect.TypeFor[net.IP](): {good: []string{`"10.0.0.1"`, `"::1"`, `""`, `null`, `"::ffff:10.0.0.1"`}, bad: []string{`"x"`, `[1]`}},
	reflect.TypeFor[netip.Addr](): {
		good: []string{`"10.0.0.1"`, `"::1"`, `""`, `"fe80::1%eth0"`, `null`},
		bad:  []string{`"10.0.0"`, `1`},
	},
	reflect.TypeFor[big.Int](): {good: []string{`1`, `-12345678901234567890123`, `null`, `0`, `"5"`}, bad: []string{`1e3`, `"x"`}},
	reflect.TypeFor[ambiguous](): {
		good: []string{`{"other":"x"}`, `{"time":"2020-01-02T03:04:05Z","size":"1Gi","other":"x"}`, `{}`, `{"Time":null,"size":null}`},
		bad:  []string{`"x"`},
	},
	reflect.TypeFor[promoted]():     {good: []string{`"2020-01-02T03:04:05Z"`, `null`}, bad: []string{`{"other":"x"}`}},
	reflect.TypeFor[promotedText](): {good: []string{`"a/b"`, `null`}, bad: []string{`{"other":"x"}`, `"ab"`}},
	// Decoders call the decoding methods of these unnamed types in some places and not in others.
	reflect.TypeFor[struct{ metav1.Time }](): {good: []string{`"2020-01-02T03:04:05Z"`, `{}`, `{"Time":{}}`, `null`}},
	reflect.TypeFor[struct{ textKey }]():     {good: []string{`"a/b"`, `{"Group":"a","Item":"b"}`, `{}`, `null`}},
	reflect.TypeFor[struct{ jsonCalls }]():   {good: []string{`1`, `{}`, `{"jsonCalls":[1]}`, `null`}},
	reflect.TypeFor[struct{ second }]():      {good: []string{`1`, `{}`, `{"second":1}`, `null`}},
	reflect.TypeFor[unstructured.Unstructured](): {
		good: []string{
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":null},"spec":{"n":1,"f":1.5,"l":[1,"a",null,{}]}}`,
			`{"apiVersion":"v1","kind":"PodList","items":[{"apiVersion":"v1","kind":"Pod"}],"metadata":{"resourceVersion":"1"}}`,
			`{"kind":"X","items":null,"a":-0,"b":1e3,"c":9223372036854775808}`, `{"kind":"X","items":[]}`,
		},
		bad: []string{`{"apiVersion":"v1"}`, `{"kind":1}`, `[]`},
	},
	reflect.TypeFor[unstructured.UnstructuredList](): {
		good: []string{
			`{"apiVersion":"v1","kind":"PodList","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}],"metadata":{"resourceVersion":"1"}}`,
			`{"kind":"XList","items":[]}`, `{"kind":"XList"}`,
		},
		bad: []string{`{"kind":"XList","items":[null]}`, `{"items":[]}`},
	},
}

var timeSpelling = spelling{
	good: []string{
		`"2020-01-02T03:04:05Z"`, `"2020-01-02T03:04:05.123456Z"`, `"2020-01-02T03:04:05.123456789+02:00"`, `"1999-12-31T23:59:59-03:30"`,
		`"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999Z"`, `null`, `"2020-02-29T00:00:00+00:00"`, `"2020-01-02T03:04:05-00:00"`,
		`"2020-01-02T03:04:05.0Z"`, `"2020-01-02T03:04:05.000000Z"`, `"0000-01-01T00:00:00Z"`, `"2020-01-02T03:04:05.5Z"`,
	},
	bad: []string{
		`""`, `"2020-02-30T00:00:00Z"`, `"2020-01-02T03:04:60Z"`, `"2020-01-02t03:04:05z"`, `"2020-01-02 03:04:05Z"`, `1577934245`,
		`"2020-01-02T3:04:05Z"`, `"2020-01-02T03:04:05,5Z"`, `"2020-01-02T24:00:00Z"`, `"2020-01-02T03:04:05+24:00"`, `true`,
		`"\u0032020-01-02T03:04:05Z"`, `"2020-01-02T03:04:05"`, `"2020-01-02T03:04:05.Z"`, `"10000-01-01T00:00:00Z"`,
		`" 2020-01-02T03:04:05Z"`, `"2020-01-02T03:04:05.1234567Z"`, `"2020-01-02T03:04:05.12345Z"`, `"2019-02-29T00:00:00Z"`,
		`"2020-01-02T03:04:05+00:60"`, `"2020-13-02T03:04:05Z"`, `"2020-00-02T03:04:05Z"`, `"2020-1-2T03:04:05Z"`, `[]`, `{}`,
		`"2020-01-02T03:04:05+0200"`, `"2020-01-02T03:04:05Z "`, `"-020-01-02T03:04:05Z"`, `"2020-01-00T03:04:05Z"`,
	},
}
