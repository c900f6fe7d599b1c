// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// report looks for fewer edits and a smaller document with which the case still fails, and returns a description of
// that case. The description has all that a new row of a test table needs.
func (c *oracleCase) report(err error) string {
	small, list := *c, edits(c.seed)
	fails := func(ways int, doc []byte, list []int64) bool {
		try := oracleCase{seed: c.seed, ways: ways, doc: doc}
		again := try.run(list, &counts{}, &sync.Mutex{})
		if again != nil {
			small, err = try, again
		}
		return again != nil
	}
	fewer := func() {
		for i := 0; i < len(list); {
			if rest := slices.Delete(slices.Clone(list), i, i+1); fails(small.ways, small.doc, rest) {
				list = rest
			} else {
				i++
			}
		}
	}
	fewer()
	for way := 1; way <= allWays; way <<= 1 {
		fails(small.ways&^way, nil, list)
	}
	prune(small.raw, func(doc []byte) bool { return fails(small.ways, doc, list) })
	fewer()

	var b strings.Builder
	fmt.Fprintf(&b, "ADMITKIT_ORACLE_SEED=%d ADMITKIT_ORACLE_CASES=1 reproduces:\n%v\n", c.seed, err)
	fmt.Fprintf(&b, "%v, edited:\n  %s\n", small.view, strings.Join(small.did, "\n  "))
	fmt.Fprintf(&b, "raw    %s\nbefore %s\nafter  %s\npatch  %s",
		small.raw, mustEncode(small.before), mustEncode(small.after), small.patch.AppendJSON(nil))
	return b.String()
}

// prune removes everything from a document that is not needed for the failure, the outermost parts first.
func prune(doc []byte, fails func([]byte) bool) {
	root := parseTree(doc)
	failsNow := func() bool {
		var b bytes.Buffer
		style{}.write(&b, root)
		return fails(b.Bytes())
	}
	var visit func(n *tree)
	visit = func(n *tree) {
		for _, name := range slices.Clone(n.names) {
			names, kid := slices.Clone(n.names), n.kids[name]
			if n.drop(name); !failsNow() {
				n.names, n.kids[name] = names, kid
				visit(kid)
			}
		}
		for i := 0; i < len(n.elems); {
			elem := n.elems[i]
			if n.elems = slices.Delete(n.elems, i, i+1); failsNow() {
				continue
			}
			n.elems = slices.Insert(n.elems, i, elem)
			visit(elem)
			i++
		}
	}
	visit(root)
}

// difference shows where two texts begin to differ.
func difference(got, want []byte) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	around := func(text []byte) []byte { return text[max(0, i-100):min(len(text), i+100)] }
	return fmt.Sprintf("\n got …%s…\nwant …%s…", around(got), around(want))
}
