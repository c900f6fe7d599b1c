// SPDX-License-Identifier: Apache-2.0

package audit

import "slices"

// A table holds at most max rows. When it is full, it removes the rows with the lowest weight. Counts may then be too
// low, but never too high.
type table[K comparable, V any] struct {
	max     int
	rows    map[K]*V
	weight  func(*V) int
	evicted int
}

func newTable[K comparable, V any](most int, weight func(*V) int) *table[K, V] {
	return &table[K, V]{max: most, rows: map[K]*V{}, weight: weight}
}

// row returns the row of a key, and creates it if it is missing.
func (t *table[K, V]) row(k K) (row *V, isNew bool) {
	if v := t.rows[k]; v != nil {
		return v, false
	}
	if len(t.rows) >= t.max {
		t.shrink()
	}
	v := new(V)
	t.rows[k] = v
	return v, true
}

// shrink removes at least an eighth of the rows: those with the lowest weights. It removes all rows of one weight
// together.
func (t *table[K, V]) shrink() {
	weights := make([]int, 0, len(t.rows))
	for _, v := range t.rows {
		weights = append(weights, t.weight(v))
	}
	slices.Sort(weights)
	limit := weights[len(weights)/8]
	for k, v := range t.rows {
		if t.weight(v) <= limit {
			delete(t.rows, k)
			t.evicted++
		}
	}
}

// seen remembers the latest keys: at least max of them, and at most twice as many.
type seen struct {
	max          int
	now, earlier map[uint64]struct{}
	forgot       bool
}

func newSeen(most int) *seen { return &seen{max: most, now: map[uint64]struct{}{}} }

// before reports whether a key was added before, and adds it.
func (s *seen) before(key uint64) bool {
	if _, ok := s.now[key]; ok {
		return true
	}
	if _, ok := s.earlier[key]; ok {
		return true
	}
	if len(s.now) >= s.max {
		s.forgot = s.forgot || len(s.earlier) > 0
		s.earlier, s.now = s.now, make(map[uint64]struct{}, s.max)
	}
	s.now[key] = struct{}{}
	return false
}

// others keeps at most ten of the added names: the first ones in sorted order.
type others struct{ names []string }

func (o *others) add(name string) {
	const most = 10
	if at, there := slices.BinarySearch(o.names, name); !there && at < most {
		o.names = slices.Insert(o.names, at, name)
		o.names = o.names[:min(len(o.names), most)]
	}
}
