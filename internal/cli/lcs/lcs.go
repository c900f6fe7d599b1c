// SPDX-License-Identifier: Apache-2.0

// Package lcs finds a longest common subsequence of two lists, for diffs.
package lcs

// A Pair has the indexes of two equal elements, one in each list.
type Pair struct{ I, J int }

// Pairs returns a longest common subsequence of two lists with n and m elements. For very long lists it uses only
// the common beginning and end.
func Pairs(n, m int, equal func(i, j int) bool) (pairs []Pair) {
	const most = 4 << 20 // cells of the table; filling them takes a few hundredths of a second
	start := 0
	for start < n && start < m && equal(start, start) {
		pairs = append(pairs, Pair{start, start})
		start++
	}
	end := 0
	for end < n-start && end < m-start && equal(n-1-end, m-1-end) {
		end++
	}
	rows, columns := n-start-end, m-start-end
	if rows*columns <= most {
		pairs = append(pairs, middle(start, rows, columns, equal)...)
	}
	for ; end > 0; end-- {
		pairs = append(pairs, Pair{n - end, m - end})
	}
	return pairs
}

// middle computes Pairs for the elements between the common beginning and the common end. It fills a table with rows
// times columns lengths.
func middle(start, rows, columns int, equal func(i, j int) bool) (pairs []Pair) {
	width := columns + 1
	long := make([]int32, (rows+1)*width) // lengths for the suffixes that begin at i and j
	for i := rows - 1; i >= 0; i-- {
		for j := columns - 1; j >= 0; j-- {
			if equal(start+i, start+j) {
				long[i*width+j] = long[(i+1)*width+j+1] + 1
			} else {
				long[i*width+j] = max(long[(i+1)*width+j], long[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < rows && j < columns; {
		switch {
		case equal(start+i, start+j):
			pairs = append(pairs, Pair{start + i, start + j})
			i, j = i+1, j+1
		case long[(i+1)*width+j] >= long[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}
