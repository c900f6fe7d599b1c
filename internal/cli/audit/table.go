// SPDX-License-Identifier: Apache-2.0

package audit

import "slices"

// A table holds at most max rows. When it is full the lightest ones go: what is left may then count
// too little, never too much.
type table[K comparable, V any] struct {
	max     int
	rows    map[K]*V
	weight  func(*V) int
	evicted int
}

func newTable[K comparable, V any](most int, weight func(*V) int) *table[K, V] {
	return &table[K, V]{max: most, rows: map[K]*V{}, weight: weight}
}

// row returns the row of a key, a new one if there is none.
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

// shrink removes the lightest rows: an eighth of all, and with them those that weigh the same.
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

// seen remembers the latest keys that it was shown: at least max of them, at most twice as many.
type seen struct {
	max          int
	now, earlier map[uint64]struct{}
	forgot       bool
}

func newSeen(most int) *seen { return &seen{max: most, now: map[uint64]struct{}{}} }

// before reports whether a key was there before, and remembers it.
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

// others are some names, in their order: the first few of them.
type others struct{ names []string }

func (o *others) add(name string) {
	const most = 10
	if at, there := slices.BinarySearch(o.names, name); !there && at < most {
		o.names = slices.Insert(o.names, at, name)
		o.names = o.names[:min(len(o.names), most)]
	}
}
