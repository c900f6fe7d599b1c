// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"slices"
	"sort"
)

// mostEdits bounds the number of edits that commonSubsequence finds. Its cost grows with the square of that number.
const mostEdits = 400

// A pair is an element of the old list and an element of the new one, by index.
type pair struct{ i, j int }

// commonSubsequence returns a longest common subsequence of x and y (the greedy algorithm of Myers, 1986).
// It returns nothing if more than mostEdits elements would have to be removed or added.
func commonSubsequence(x, y []int) []pair {
	limit := min(len(x)+len(y), mostEdits)
	zero := limit + 1
	reach := make([]int, 2*limit+3) // the furthest index of x on diagonal k (i-j = k), stored at zero+k
	var history [][]int
	for edits := range limit + 1 {
		history = append(history, slices.Clone(reach[zero-edits-1:zero+edits+2]))
		for k := -edits; k <= edits; k += 2 {
			before, i := predecessor(history[edits], k)
			if before < k {
				i++
			}
			for i < len(x) && i-k < len(y) && x[i] == y[i-k] {
				i++
			}
			reach[zero+k] = i
			if i >= len(x) && i-k >= len(y) {
				return walkBack(history, len(x), len(y))
			}
		}
	}
	return nil
}

// predecessor returns the neighbouring diagonal from which one edit leads to diagonal k, and the index
// of x that it reached. The slice reach is centred on diagonal 0.
func predecessor(reach []int, k int) (diagonal, i int) {
	middle := len(reach) / 2
	edits := middle - 1
	left, right := reach[middle+k-1], reach[middle+k+1]
	if k == -edits || k != edits && left < right {
		return k + 1, right
	}
	return k - 1, left
}

// walkBack returns the pairs of equal elements on the path of edits, which it follows from its end to its start.
func walkBack(history [][]int, i, j int) (pairs []pair) {
	for _, reach := range slices.Backward(history) {
		diagonal, start := predecessor(reach, i-j)
		for i > start && j > start-diagonal {
			i, j = i-1, j-1
			pairs = append(pairs, pair{i, j})
		}
		i, j = start, start-diagonal
	}
	return pairs
}

// none marks a new element that matches no old one.
const none = -1

// longestIncreasing marks the elements of a longest increasing subsequence of from. Entries with the value none do not
// count.
func longestIncreasing(from []int) []bool {
	var tails []int // tails[k] is the end of the best subsequence of length k+1
	prev := make([]int, len(from))
	for j, i := range from {
		if i == none {
			continue
		}
		k := sort.Search(len(tails), func(k int) bool { return from[tails[k]] >= i })
		prev[j] = none
		if k > 0 {
			prev[j] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, j)
		} else {
			tails[k] = j
		}
	}
	marks := make([]bool, len(from))
	if len(tails) > 0 {
		for j := tails[len(tails)-1]; j != none; j = prev[j] {
			marks[j] = true
		}
	}
	return marks
}
