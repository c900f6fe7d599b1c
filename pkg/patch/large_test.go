// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/admitkit/admitkit/pkg/patch"
)

type entry struct {
	Name  string `json:"name,omitempty"` // without names, the list has no key
	Kind  string `json:"kind"`
	Value int    `json:"value"`
	Zone  string `json:"zone"`
}

type entries struct {
	List []entry `json:"list"`
}

func manyEntries(n int, keyed bool) entries {
	var e entries
	for i := range n {
		e.List = append(e.List, entry{Kind: "k", Value: i, Zone: fmt.Sprint("zone ", i%7)})
		if keyed {
			e.List[i].Name = fmt.Sprint("entry ", i)
		}
	}
	return e
}

// TestDiffOfLongLists compares lists that are too long for an algorithm of quadratic cost. The patch must give the
// edited list and have at most the expected number of operations.
func TestDiffOfLongLists(t *testing.T) {
	const n = 10_000
	for _, row := range []struct {
		reason string
		edit   func([]entry) []entry
		most   int // operations
	}{
		{"one in front", func(l []entry) []entry { return slices.Insert(l, 0, entry{Name: "new", Kind: "new", Value: -1}) }, 1},
		{"one gone from the front", func(l []entry) []entry { return l[1:] }, 1},
		{"the last becomes the first", func(l []entry) []entry { return slices.Insert(l[:n-1], 0, l[n-1]) }, 1},
		{"the first becomes the last", func(l []entry) []entry { return append(l[1:n:n], l[0]) }, 1},
		{"one in front, all others edited", func(l []entry) []entry {
			for i := range l {
				l[i].Zone = "elsewhere"
			}
			return slices.Insert(l, 0, entry{Name: "new", Kind: "new", Value: -1})
		}, n + 1},
		{"one between any two", func(l []entry) (out []entry) {
			for i, e := range l {
				out = append(out, e, entry{Name: fmt.Sprint("new ", i), Kind: "new", Value: -i - 1})
			}
			return out
		}, n},
		{"all backwards", func(l []entry) []entry { slices.Reverse(l); return l }, n - 1},
		{"all other", func(l []entry) []entry {
			for i := range l {
				l[i] = entry{Name: fmt.Sprint("new ", i), Kind: "new", Value: -i - 1, Zone: "new"}
			}
			return l
		}, 1},
	} {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, keyed %v", row.reason, keyed), func(t *testing.T) {
				before, after := manyEntries(n, keyed), manyEntries(n, keyed)
				if after.List = row.edit(after.List); !keyed {
					for i := range after.List {
						after.List[i].Name = ""
					}
				}
				raw := mustEncode(before)
				p, err := patch.Diff(raw, after)
				if err != nil {
					t.Fatal(err)
				}
				if len(p) == 0 || len(p) > row.most {
					t.Errorf("got %d operations, want 1 to %d", len(p), row.most)
				}
				if len(p) == 1 {
					checkApplied(t, string(raw), p, after)
				} else {
					checkOrder(t, before.List, after.List, p)
				}
			})
		}
	}
}

// checkOrder applies the operations of a patch to the list itself and compares the result with want. The API server's
// library copies the list for each operation, which is too slow for thousands of operations.
func checkOrder(t *testing.T, list, want []entry, p patch.Patch) {
	t.Helper()
	var now []*entry
	for i := range list {
		now = append(now, &list[i])
	}
	for _, op := range p {
		var i, j int
		if _, err := fmt.Sscanf(string(op.Path), "/list/%d", &i); err != nil {
			t.Fatal(err)
		}
		switch {
		case op.Path.Parent() != "/list":
			now[i].Zone = want[i].Zone // an edit
		case op.Op == patch.Remove:
			now = slices.Delete(now, i, i+1)
		case op.Op == patch.Add:
			now = slices.Insert(now, i, &want[i])
		case op.Op == patch.Move:
			if _, err := fmt.Sscanf(string(op.From), "/list/%d", &j); err != nil {
				t.Fatal(err)
			}
			moved := now[j]
			now = slices.Insert(slices.Delete(now, j, j+1), i, moved)
		}
	}
	if !slices.EqualFunc(now, want, func(x *entry, y entry) bool { return *x == y }) {
		t.Error("the patch gives another list")
	}
}

// TestDiffMovesAsLittleAsPossible compares random permutations. The patch must move only the elements outside of a
// longest increasing subsequence.
func TestDiffMovesAsLittleAsPossible(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 500 {
		before := manyEntries(1+r.Intn(9), r.Intn(2) == 0)
		order := r.Perm(len(before.List))
		var after entries
		for _, i := range order {
			after.List = append(after.List, before.List[i])
		}
		raw := mustEncode(before)
		p, err := patch.Diff(raw, after)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(p), len(order)-longestRun(order); got != want {
			t.Errorf("order %v: got %d operations, want %d: %s", order, got, want, p.AppendJSON(nil))
		}
		checkApplied(t, string(raw), p, after)
	}
}

// longestRun returns the length of the longest increasing subsequence. It tries all subsets.
func longestRun(order []int) int {
	best := 0
	for set := range 1 << len(order) {
		var run []int
		for k, i := range order {
			if set>>k&1 == 1 {
				run = append(run, i)
			}
		}
		if slices.IsSorted(run) {
			best = max(best, len(run))
		}
	}
	return best
}
