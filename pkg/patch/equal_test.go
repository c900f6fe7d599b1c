// SPDX-License-Identifier: Apache-2.0

package patch

import "testing"

// TestHashesDecideNothing gives all values of two documents one hash: what is equal must be
// found out all the same.
func TestHashesDecideNothing(t *testing.T) {
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
		want, err := Documents([]byte(docs[0]), []byte(docs[1]))
		if err != nil {
			t.Fatal(err)
		}
		b, err := parse([]byte(docs[0]))
		if err != nil {
			t.Fatal(err)
		}
		a, err := parse([]byte(docs[1]))
		if err != nil {
			t.Fatal(err)
		}
		even(b)
		even(a)
		d := differ{untyped: true}
		d.value("", b, a, b, shape{})
		if got, want := string(d.ops.AppendJSON(nil)), string(want.AppendJSON(nil)); got != want {
			t.Errorf("%s to %s: got %s, want %s", docs[0], docs[1], got, want)
		}
	}
}
