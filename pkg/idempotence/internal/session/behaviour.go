// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Behaviour counts how many kinds of patches, denials and warnings the webhooks of a run have sent.
type Behaviour struct {
	kinds    map[string]bool // operations and paths of patches, without keys and indexes
	denials  map[string]bool // messages, without names and numbers
	warnings map[string]bool // texts, without names and numbers
	known    map[string]bool // texts of recorded patches and warnings
	// Updates is set once the webhooks have changed an object in an UPDATE.
	Updates bool
	// Inside has the lists of containers in which the webhooks have changed an element that was there, such as
	// "initContainers".
	Inside map[string]bool
	// Zeros are the names of fields to which the webhooks have added zero values.
	Zeros map[string]bool
}

// mostKnown is the maximum number of texts in known. A text in known need not be read again.
const mostKnown = 1024

func newBehaviour() *Behaviour {
	return &Behaviour{kinds: map[string]bool{}, denials: map[string]bool{}, warnings: map[string]bool{}, known: map[string]bool{}, Inside: map[string]bool{}, Zeros: map[string]bool{}}
}

// WritesZeros reports whether the webhooks have added zero values to several fields, like a program that decodes an
// object into a Go type and encodes it again.
func (b *Behaviour) WritesZeros() bool { return b != nil && len(b.Zeros) > 1 }

// Patches returns the number of kinds of patches.
func (b *Behaviour) Patches() int { return len(b.kinds) }

// Denials returns the number of kinds of denials.
func (b *Behaviour) Denials() int { return len(b.denials) }

// Warnings returns the number of kinds of warnings.
func (b *Behaviour) Warnings() int { return len(b.warnings) }

// Seen returns the number of kinds of patches, denials and warnings.
func (b *Behaviour) Seen() int { return len(b.kinds) + len(b.denials) + len(b.warnings) }

// note records an answer to a request.
func (b *Behaviour) note(q *Query, a *Answer) {
	if b == nil || a.Fault != "" {
		return
	}
	for _, text := range a.Warnings {
		if !b.known[text] {
			b.keep(text)
			b.warnings[kindOfMessage(text, objects.NameOf(q.Object, q.Old))] = true
		}
	}
	switch {
	case !a.Allowed:
		b.denials[kindOfMessage(a.Message, objects.NameOf(q.Object, q.Old))] = true
	case len(a.Patch) == 0:
	case q.Operation == admissionv1.Update && !b.Updates, !b.known[string(a.Patch)]:
		b.notePatch(q, a)
	}
}

// keep records that a text is known.
func (b *Behaviour) keep(text string) {
	if len(b.known) < mostKnown {
		b.known[text] = true
	}
}

// notePatch records a patch.
func (b *Behaviour) notePatch(q *Query, a *Answer) {
	b.keep(string(a.Patch))
	b.kinds[kindOfPatch(a.Patch)] = true
	if q.Object == nil || a.After == nil {
		return
	}
	for _, c := range tree.Changes(q.Object.Doc, a.After.Doc) {
		isZero := c.Kind == tree.Added && edits.IsZero(c.New) // as an encoder adds
		b.Updates = b.Updates || q.Operation == admissionv1.Update && !isZero
		if c.Kind == tree.Added {
			tree.Leaves(c.New, func(p tree.Path, value any) {
				if path := append(slices.Clone(c.Path), p...); edits.IsZero(value) && !path[len(path)-1].Element {
					b.Zeros[path.Last()] = true
				}
			})
		}
		for i, step := range c.Path {
			if step.Element && i < len(c.Path)-1 && strings.HasSuffix(strings.ToLower(c.Path[i-1].Name), "containers") {
				b.Inside[c.Path[i-1].Name] = true
			}
		}
	}
}

// kindOfPatch returns the operations and paths of a patch, sorted, without the keys of maps and the indexes of lists.
func kindOfPatch(patch []byte) string {
	var operations []struct{ Op, Path string }
	if json.Unmarshal(patch, &operations) != nil {
		return ""
	}
	var all []string
	for _, op := range operations {
		all = append(all, op.Op+" "+generalised(op.Path))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n")
}

// freeKeys are maps whose keys can be any text.
var freeKeys = []string{"annotations", "labels", "matchLabels", "nodeSelector", "data", "stringData", "binaryData", "limits", "requests"}

func generalised(pointer string) string {
	steps := strings.Split(pointer, "/")
	for i, step := range steps {
		if step == "-" || step != "" && strings.Trim(step, "0123456789") == "" || i > 0 && slices.Contains(freeKeys, steps[i-1]) {
			steps[i] = "*"
		}
	}
	return strings.Join(steps, "/")
}

var numberOrQuoted = regexp.MustCompile(`[0-9]+|"[^"]*"|'[^']*'`)

func kindOfMessage(message, name string) string {
	if name != "" {
		message = strings.ReplaceAll(message, name, "*")
	}
	return numberOrQuoted.ReplaceAllString(message, "*")
}
