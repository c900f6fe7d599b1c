// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/base64"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// maxCombinations is the maximum number of combinations that a sampler remembers.
const maxCombinations = 10_000

// A sampler chooses the calls to record. It is safe for concurrent use.
type sampler struct {
	rate  float64
	speed float64 // maximum, in bytes per second
	novel int
	seed  maphash.Seed

	mu     sync.Mutex
	budget float64 // bytes that may be recorded now
	filled time.Time
	seen   map[uint64]int    // the number of recorded calls, by combination
	shapes map[uint64]uint64 // of the last patches, by the hash of their base64
}

func newSampler(o *Options, now time.Time) *sampler {
	s := &sampler{rate: o.Rate, speed: float64(limit(o.MaxBytesPerSecond, defaultBytesPerSecond)), novel: o.Novel,
		seed: maphash.MakeSeed(), filled: now, seen: map[uint64]int{}, shapes: map[uint64]uint64{}}
	if o.Rate == 0 {
		s.rate = 1
	}
	if o.Novel == 0 {
		s.novel = defaultNovel
	}
	s.budget = s.burst()
	return s
}

// burst is the number of bytes that may be recorded at once after a pause.
func (s *sampler) burst() float64 { return s.speed }

// A choice is the reason for recording a call, or the decision not to record it.
type choice int

const (
	skip choice = iota
	byRate
	asNovel
)

// choose decides whether to record a call of size bytes. It also returns the combination of the call, for undo.
func (s *sampler) choose(o *ended, size int, now time.Time) (why choice, combination uint64) {
	lucky := s.rate >= 1 || s.rate > 0 && rand.Float64() < s.rate
	if s.novel < 0 && !lucky {
		return skip, 0
	}
	if s.novel > 0 {
		combination = s.combination(o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, known := s.seen[combination]; n < s.novel && (known || len(s.seen) < maxCombinations) {
		s.seen[combination] = n + 1
		return asNovel, combination
	}
	if !lucky {
		return skip, combination
	}
	s.budget = min(s.budget+s.speed*max(now.Sub(s.filled), 0).Seconds(), s.burst())
	s.filled = now
	if s.budget <= 0 {
		return skip, combination
	}
	s.budget -= float64(size) // it may become negative, so that a large call can be recorded too
	return byRate, combination
}

// undo reverts the effect of a choice on the budget and the combinations, because the call was dropped.
func (s *sampler) undo(why choice, combination uint64) {
	if why != asNovel {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.seen[combination]; n > 0 {
		s.seen[combination] = n - 1
	}
}

// forget makes all combinations novel again.
func (s *sampler) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.seen)
}

// combination returns a hash of the properties that Options.Novel lists.
func (s *sampler) combination(o *ended) uint64 {
	sum := maphash.Comparable(s.seed, struct {
		hook, path        string
		kind              metav1.GroupVersionKind
		operation         admissionv1.Operation
		outcome, withheld webhook.Outcome
		code              int32
		dryRun            bool
	}{o.Hook, o.path, o.Kind, o.Operation, o.Outcome, o.Withheld, o.Code, o.DryRun})
	if o.Outcome == webhook.Mutated {
		memory := patchMemory.Get().(*[]byte)
		*memory = o.appendAnswer((*memory)[:0])
		sum ^= s.patchShape(*memory)
		patchMemory.Put(memory)
	}
	return sum
}

// Combination returns a hash of the properties by which a [Recorder] compares calls: webhook, path, kind, operation,
// outcome, code, dry run, and the operations and paths of the patch. With the same seed, calls that are alike have the
// same hash. The request is the one in c.Request.
func (c *Call) Combination(seed maphash.Seed, request *admissionv1.AdmissionRequest) uint64 {
	s := sampler{seed: seed, shapes: map[uint64]uint64{}}
	return s.combination(&ended{path: c.Path, answer: c.Answer, Observation: &webhook.Observation{
		Hook: c.Webhook, Kind: request.Kind, Operation: request.Operation, Outcome: c.Outcome, Withheld: c.Withheld,
		Code: int32(c.Code), DryRun: request.DryRun != nil && *request.DryRun,
	}})
}

// maxShapes is the maximum number of patches whose shape is remembered. Many patches are the same.
const maxShapes = 1000

// patchShape returns a hash of the set of operations and paths of the patch in an answer. Indices do not count.
func (s *sampler) patchShape(answer []byte) uint64 {
	encoded := patchIn(answer)
	if encoded == nil {
		return 0
	}
	key := maphash.Bytes(s.seed, encoded)
	s.mu.Lock()
	shape, ok := s.shapes[key]
	s.mu.Unlock()
	if ok {
		return shape
	}
	shape = s.shapeOf(encoded)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.shapes) >= maxShapes {
		clear(s.shapes)
	}
	s.shapes[key] = shape
	return shape
}

var patchMemory = sync.Pool{New: func() any { return new([]byte) }}

// shapeOf returns the shape of a patch in base64.
func (s *sampler) shapeOf(encoded []byte) uint64 {
	memory := patchMemory.Get().(*[]byte)
	defer patchMemory.Put(memory)
	*memory = slices.Grow((*memory)[:0], base64.StdEncoding.DecodedLen(len(encoded)))
	n, err := base64.StdEncoding.Decode((*memory)[:cap(*memory)], encoded)
	if err != nil {
		return 1
	}
	var seen [64]uint64
	return s.operations((*memory)[:n], seen[:0])
}

// patchIn returns the text of the first string called patch, or nil.
func patchIn(answer []byte) []byte {
	const name = `"patch"`
	i := bytes.Index(answer, []byte(name))
	if i < 0 {
		return nil
	}
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(answer[i+len(name):], " \t\r\n:"), []byte(`"`))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return nil
	}
	return rest[:end]
}

// operations returns the sum of the hashes of different operations. Once seen is full, further ones do not count.
func (s *sampler) operations(patch []byte, seen []uint64) (sum uint64) {
	c := jsonraw.NewCursor(patch)
	more, err := c.OpenArray()
	for more && err == nil {
		var h maphash.Hash
		h.SetSeed(s.seed)
		if err = writeOperation(&h, c); err != nil {
			break
		}
		if one := h.Sum64(); len(seen) < cap(seen) && !slices.Contains(seen, one) {
			seen = append(seen, one)
			sum += one
		}
		more, err = c.NextElement()
	}
	return sum
}

// writeOperation reads an operation and writes its kind and path to the hash.
func writeOperation(h *maphash.Hash, c *jsonraw.Cursor) error {
	more, err := c.OpenObject()
	for more && err == nil {
		var name, text []byte
		if name, err = c.Name(); err != nil {
			break
		}
		switch member := string(name); {
		case (member == "op" || member == "path") && c.Kind() == jsonraw.String:
			_ = h.WriteByte(member[0]) // it never fails
			if text, err = c.TextBytes(); err == nil {
				writePlace(h, text)
			}
		default:
			err = c.Skip()
		}
		if err == nil {
			more, err = c.NextMember()
		}
	}
	return err
}

var asterisk = []byte("*")

// writePlace writes a text to the hash, with an asterisk instead of each index.
func writePlace(h *maphash.Hash, text []byte) {
	for len(text) > 0 {
		token := text
		if i := bytes.IndexByte(text, '/'); i >= 0 {
			token = text[:i]
			text = text[i+1:]
		} else {
			text = nil
		}
		if len(token) > 0 && len(bytes.Trim(token, "0123456789-")) == 0 {
			token = asterisk
		}
		_, _ = h.Write(token) // it never fails
		_ = h.WriteByte('/')
	}
}
