// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"reflect"
	"testing"
)

// TestEqualHashesDoNotMeanEqualValues gives all values of two documents one hash. The comparison must
// still find the same operations.
func TestEqualHashesDoNotMeanEqualValues(t *testing.T) {
	var even func(n *node)
	even = func(n *node) {
		n.hash = 1
		for i := range n.members() {
			even(&n.members()[i].node)
		}
		for i := range n.elems() {
			even(&n.elems()[i])
		}
	}
	for _, docs := range [][2]string{
		{`[1,2,3,"1",null,[1],[1,2],{},{"a":1},{"a":1,"b":1}]`, `[2.0,[1,2],"1",{"a":1,"b":1},[1],1,null,{"b":1},{"a":1},{}]`},
		{`[{"name":1,"x":true},{"name":2,"x":true},{"name":"1","x":true}]`, `[{"name":"1","x":true},{"name":2,"x":false},{"name":3,"x":true}]`},
		{`{"a":[[],[[]],[[],[]]]}`, `{"a":[[[],[]],[[]]]}`},
	} {
		b, err := Parse([]byte(docs[0]))
		if err != nil {
			t.Fatal(err)
		}
		a, err := Parse([]byte(docs[1]))
		if err != nil {
			t.Fatal(err)
		}
		want, err := Documents(b, a)
		if err != nil {
			t.Fatal(err)
		}
		even(b.root)
		even(a.root)
		got, err := Documents(b, a)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s to %s: got %v and error %v, want %v", docs[0], docs[1], got, err, want)
		}
	}
}
