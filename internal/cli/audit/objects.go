// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"hash/fnv"
	"slices"
)

// An objectKey is an object and a webhook that was called for it.
type objectKey struct {
	hook   hook
	object object
}

// An objectRow counts the changes of a webhook to one existing object.
type objectRow struct {
	calls, mutated, patched int // numbers of requests
	patches                 [mostPatches]patchCount
	users                   []string
	examples                []Example
}

// A patchCount counts how often a webhook sent the patch with this hash. An objectRow keeps only the mostPatches
// patches with the smallest hashes. With this choice, the result does not depend on the order of the requests.
type patchCount struct {
	hash  uint64
	count int
}

const (
	mostPatches = 8
	mostUsers   = 4
)

// judgeObject counts, for each webhook, its changes to an object that already existed. It ignores creations, because
// each may create a new object of the same name. It ignores requests that changed nothing in storage, because the
// webhook must repeat its change in the next request.
func (t *tally) judgeObject(q *request) {
	if !q.stored() {
		return
	}
	for i, c := range q.calls {
		if !t.options.wants(c.hook) || slices.ContainsFunc(q.calls[:i], func(before *call) bool { return before.hook == c.hook }) {
			continue
		}
		row, _ := t.objects.row(objectKey{c.hook, q.object})
		row.add(q, c.hook)
	}
}

func (r *objectRow) add(q *request, h hook) {
	r.calls++
	mutated, patched := false, true
	hash := fnv.New64a()
	var calls []*call
	for i, c := range q.calls {
		if c.hook != h || !c.mutated || c.patched && q.provesNoOp(i) {
			continue
		}
		mutated, patched, calls = true, patched && c.patched, append(calls, c)
		for _, op := range c.patch {
			for _, part := range []string{string(op.Op), string(op.Path), string(op.From), string(op.Value)} {
				hash.Write([]byte(part))
				hash.Write([]byte{0})
			}
		}
	}
	if !mutated {
		return
	}
	r.mutated++
	r.examples = keep(r.examples, q, 0, calls)
	if at, there := slices.BinarySearch(r.users, q.user); !there && at < mostUsers {
		r.users = slices.Insert(r.users, at, q.user)[:min(len(r.users)+1, mostUsers)]
	}
	if patched {
		r.patched++
		r.sent(hash.Sum64())
	}
}

// sent counts a patch with this hash.
func (r *objectRow) sent(hash uint64) {
	for i := range r.patches {
		p := &r.patches[i]
		switch {
		case p.count > 0 && p.hash == hash:
			p.count++
			return
		case p.count == 0 || p.hash > hash:
			copy(r.patches[i+1:], r.patches[i:])
			*p = patchCount{hash, 1}
			return
		}
	}
}

// most returns how often the most frequent patch was sent.
func (r *objectRow) most() (most int) {
	for _, p := range r.patches {
		most = max(most, p.count)
	}
	return most
}

// again returns the rule of the finding about this row: mutatesAgain or mutatesEachTime. It returns false if the
// webhook changed the object in fewer than threshold requests, or in less than half of the requests for which it was
// called.
func (r *objectRow) again(threshold int) (rule string, ok bool) {
	switch {
	case r.mutated < threshold || 2*r.mutated < r.calls:
		return "", false
	case r.patched == r.mutated && r.most() < threshold:
		return mutatesEachTime, true
	}
	return mutatesAgain, true
}
