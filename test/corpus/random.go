// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// Random returns a correct handler for new Pods that is composed of 2 to 6 edits. buggy returns the
// same handler with a bug in edit i, or false if there is no edit i. Equal seeds give equal handlers.
func Random(seed int64) (correct Case, buggy func(i int) (Case, bool)) {
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	parts := compose(r)
	correct = composed(fmt.Sprintf("seed %d: %s", seed, describe(parts, -1, "")), parts, -1, bug{})
	return correct, func(i int) (Case, bool) {
		if i < 0 || i >= len(parts) {
			return Case{}, false
		}
		b := parts[i].bugs[rand.New(rand.NewPCG(uint64(seed), uint64(i)+2)).IntN(len(parts[i].bugs))]
		name := fmt.Sprintf("seed %d, %d broken: %s", seed, i, describe(parts, i, b.name))
		c := composed(name, parts, i, b).breaks(b.laws...)
		if b.advice {
			c = c.advice()
		}
		return c, true
	}
}

// A part is one edit of a random handler, with the bugs that can replace it.
type part struct {
	name   string
	ensure edit
	bugs   []bug
}

// A bug is one way to break a part. The harness must report at least one of the laws in laws.
type bug struct {
	name string
	laws []string
	new  func() edit
	// advice is set if the author of an object may cause the conflict, so that advice is enough.
	advice bool
}

// broken returns a bug whose edit has no state.
func broken(name string, e edit, laws ...string) bug {
	return bug{name: name, laws: laws, new: func() edit { return e }}
}

// partInputs has the random values for one part of a handler.
type partInputs struct {
	*rand.Rand
	word string   // name of what this part adds
	own  []string // the names of the containers that all parts of the handler add
}

// A maker generates a part. The parts of a handler have different makers, so no two parts write the
// same field.
type maker func(m *partInputs) part

// compose chooses the parts of a random handler.
func compose(r *rand.Rand) []part {
	makers := slices.Concat(metadataParts, containerParts, podParts)
	chosen := r.Perm(len(makers))[:2+r.IntN(5)]
	words := make([]string, len(chosen))
	for i := range words {
		words[i] = randomWord(r) + "-" + string(rune('a'+i))
	}
	parts := make([]part, len(chosen))
	for i, k := range chosen {
		parts[i] = makers[k](&partInputs{Rand: r, word: words[i], own: words})
	}
	return parts
}

func randomWord(r *rand.Rand) string {
	word := make([]byte, 3+r.IntN(6))
	for i := range word {
		word[i] = byte('a' + r.IntN(26))
	}
	return string(word)
}

// describe returns the names of the parts, separated by commas. The part with the index at is followed by the name of
// its bug, the argument how, in parentheses.
func describe(parts []part, at int, how string) string {
	var names []string
	for i, p := range parts {
		if i == at {
			names = append(names, p.name+" ("+how+")")
			continue
		}
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// composed returns a case with all parts. The part with the index at has the bug b. If at is -1, no part has a bug.
func composed(name string, parts []part, at int, b bug) Case {
	c := podCase(name, func() http.Handler {
		edits := make([]edit, len(parts))
		for i, p := range parts {
			edits[i] = p.ensure
			if i == at {
				edits[i] = b.new()
			}
		}
		return pods(inOrder(edits...))
	})
	short, _, _ := strings.Cut(name, ":")
	c.Webhook = registration(short, "", "pods", create)
	return c
}

// others returns the containers that no part of the handler added. An edit that changes only these
// does not depend on the order of the parts.
func (m *partInputs) others(p *corev1.Pod) []*corev1.Container {
	return slices.DeleteFunc(everyContainer(p), func(c *corev1.Container) bool { return slices.Contains(m.own, c.Name) })
}

// tryEach returns an edit that applies change to every container in m.others. It stops at the first error.
func (m *partInputs) tryEach(change func(c *corev1.Container) error) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		for _, c := range m.others(p) {
			if err := change(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// each returns an edit that applies change to every container in m.others.
func (m *partInputs) each(change func(c *corev1.Container)) edit {
	return changes(func(p *corev1.Pod) {
		for _, c := range m.others(p) {
			change(c)
		}
	})
}

// missing returns an edit that applies change to each container in m.others for which has returns false.
func (m *partInputs) missing(has func(c *corev1.Container) bool, change func(c *corev1.Container)) edit {
	return m.each(func(c *corev1.Container) {
		if !has(c) {
			change(c)
		}
	})
}

// early returns a bug that skips the whole Pod if done returns true for any container in m.others.
func (m *partInputs) early(done func(c *corev1.Container) bool, e edit) bug {
	return broken("early return", func(r *review.Request, p *corev1.Pod) error {
		if slices.ContainsFunc(m.others(p), done) {
			return nil
		}
		return e(r, p)
	}, "L4b", "L5")
}

// denied returns a bug that rejects Pods for which when returns true, such as results of the edit.
func denied(when func(p *corev1.Pod) bool, e edit) bug {
	return broken("refuses its own output", func(r *review.Request, p *corev1.Pod) error {
		if when(p) {
			return denial("this is reserved")
		}
		return e(r, p)
	}, "L2")
}
