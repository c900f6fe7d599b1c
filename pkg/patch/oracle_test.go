// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/received"
	"github.com/admitkit/admitkit/pkg/patch"
)

// TestOracle edits random objects of all kinds. It acts as a handler that knows the whole Go type of the object, only
// some of its fields, or no type. It checks every patch against these rules:
//
//   - applied to the document by the API server's own library, it gives the edited object;
//   - values without an edit do not change, not even in their spelling;
//   - members that the Go type does not know stay in their element;
//   - without any one of its operations the result differs;
//   - equal differences give equal bytes;
//   - without an edit there is no patch.
//
// Then it calls checkDocumentPair with pairs of the received document, the patched document, and the encodings of the
// object before and after the edits.
//
// ADMITKIT_ORACLE_CASES sets the number of cases. ADMITKIT_ORACLE_SEED sets the seed of the first case.
func TestOracle(t *testing.T) {
	cases, long := number(t, "ADMITKIT_ORACLE_CASES", 400)
	seed, _ := number(t, "ADMITKIT_ORACLE_SEED", 1)
	var (
		wg     sync.WaitGroup
		next   = make(chan int64)
		totals counts
		lock   sync.Mutex
		start  = time.Now()
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				c := oracleCase{seed: i, ways: allWays}
				err := c.run(edits(i), &totals, &lock)
				if err != nil {
					t.Error(c.report(err))
				}
			}
		})
	}
	for i := range cases {
		if t.Failed() {
			break
		}
		next <- seed + i
		if step := max(1, cases/100); long && (i+1)%step == 0 {
			fmt.Fprintf(os.Stderr, "oracle: %d of %d cases, %s\n", i+1, cases, time.Since(start).Round(time.Second))
		}
	}
	close(next)
	wg.Wait()
	t.Logf("%d cases: %s", cases, totals)
	if int64(totals.refused)*20 > cases {
		t.Errorf("%d of %d cases were rejected because elements look alike, want at most 1 in 20", totals.refused, cases)
	}
}

func number(t *testing.T, variable string, fallback int64) (int64, bool) {
	text, set := os.LookupEnv(variable)
	if !set {
		return fallback, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n, true
}

// counts are statistics of all cases. TestOracle logs them, to show that the cases were not all trivial.
type counts struct{ edits, operations, moves, planted, unchanged, refused, checkedOps int }

func (c counts) String() string {
	return fmt.Sprintf("%d edits, %d operations (%d left out in turn), %d of them moves, %d unknown members, %d cases without a change, %d refused",
		c.edits, c.operations, c.checkedOps, c.moves, c.planted, c.unchanged, c.refused)
}

// edits returns the numbers of the edits of a case. Each edit has its own random source.
func edits(seed int64) []int64 {
	list := make([]int64, rand.New(rand.NewSource(seed)).Intn(9))
	for i := range list {
		list[i] = int64(i)
	}
	return list
}

type oracleCase struct {
	seed int64
	ways int    // the properties of the document: see strangeDocument
	doc  []byte // used instead of a random document

	view          view
	raw           []byte
	before, after any
	did           []string
	patch         patch.Patch
	refused       bool
}

func (c *oracleCase) decode(data []byte) (any, error) {
	v := reflect.New(c.view.typ).Interface()
	return v, kjson.UnmarshalCaseSensitivePreserveInts(data, v)
}

// run generates the objects and the document, applies the edits with these numbers, and checks the patch.
func (c *oracleCase) run(edits []int64, totals *counts, lock *sync.Mutex) error {
	r := rand.New(rand.NewSource(c.seed))
	c.view = randomView(r)
	nilChance, few := []float64{0.5, 0.7, 0.85}[r.Intn(3)], r.Intn(3) == 0
	filled := reflect.New(c.view.kind).Interface()
	newFiller(c.seed, nilChance, few).Fill(filled)
	if c.raw = c.doc; c.raw == nil {
		c.raw = strangeDocument(mustEncode(filled), c.view, c.ways, c.seed)
	}

	var err error
	if c.before, err = c.decode(c.raw); err == nil {
		c.after, err = c.decode(c.raw)
	}
	if err != nil {
		return fmt.Errorf("the test made a document that does not decode: %w", err)
	}
	var history trace
	c.did = nil
	for _, k := range edits {
		s := c.seed*16 + k
		e := editor{r: rand.New(rand.NewSource(s)), fill: newFiller(s, nilChance, few), favour: uint64(c.seed), untyped: !c.view.isTyped()}
		e.edit(reflect.ValueOf(c.after).Elem(), &history, "")
		c.did = append(c.did, e.did)
	}
	n, err := c.check(&history)
	lock.Lock()
	defer lock.Unlock()
	totals.add(c, n)
	return err
}

func (c *counts) add(o *oracleCase, checked int) {
	c.edits += len(o.did)
	c.operations += len(o.patch)
	c.checkedOps += checked
	for _, op := range o.patch {
		if op.Op == patch.Move {
			c.moves++
		}
	}
	switch {
	case o.refused:
		c.refused++
	case len(o.patch) == 0:
		c.unchanged++
	}
	c.planted += bytes.Count(o.raw, []byte(future))
}

// receivedDiff computes the patch with a received.Document that was decoded from inside a larger document.
func receivedDiff(raw []byte, after any) (patch.Patch, error) {
	body := slices.Concat([]byte(`{"object":`), raw, []byte(`}`))
	start := len(`{"object":`)
	var b received.Document
	end, err := b.Decode(body, start, 1, reflect.New(reflect.TypeOf(after).Elem()).Interface())
	if err != nil {
		return nil, err
	}
	if want := start + len(bytes.TrimRight(raw, " \t\r\n")); end != want {
		return nil, fmt.Errorf("the document ends at %d, not at %d", end, want)
	}
	return b.Diff(after)
}

func (c *oracleCase) check(history *trace) (checked int, err error) {
	raw := bytes.Clone(c.raw)
	if p, err := patch.Diff(raw, c.before); err != nil || p != nil {
		return 0, fmt.Errorf("the document as it was decoded: patch %s, error %s", p.AppendJSON(nil), fmt.Sprint(err))
	}
	c.patch, err = patch.Diff(raw, c.after)
	if c.refused = errors.Is(err, patch.ErrAlike); c.refused && alike(parseTree(c.raw), parseTree(mustEncode(c.before))) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("Diff: %w", err)
	}
	again, err := patch.Diff(raw, reflect.ValueOf(c.after).Elem().Interface())
	if err != nil {
		return 0, fmt.Errorf("Diff of the values instead of pointers: %w", err)
	}
	text := c.patch.AppendJSON(nil)
	if other := again.AppendJSON(nil); !bytes.Equal(text, other) {
		return 0, fmt.Errorf("two patches for one difference: the other is %s", other)
	}
	if other, err := receivedDiff(raw, c.after); err != nil || !bytes.Equal(text, other.AppendJSON(nil)) {
		return 0, fmt.Errorf("a received.Document gives another patch: %s, error %s", other.AppendJSON(nil), fmt.Sprint(err))
	}
	if !bytes.Equal(raw, c.raw) {
		return 0, errors.New("Diff wrote into the document")
	}
	result, err := apply(c.raw, text)
	if err != nil {
		return 0, fmt.Errorf("the patch does not apply: %w", err)
	}
	got, err := c.decode(result)
	if err != nil {
		return 0, fmt.Errorf("the result does not decode: %w", err)
	}
	// Go values that are equal in JSON count as equal, such as a nil pointer and a pointer to a nil list.
	if got, want := c.plain(got), c.plain(c.after); !equality.Semantic.DeepEqual(got, want) {
		return 0, fmt.Errorf("the result is another object: %s", difference(mustEncode(got), mustEncode(want)))
	}
	if equality.Semantic.DeepEqual(c.before, c.after) && bytes.Equal(mustEncode(c.plain(c.before)), mustEncode(c.plain(c.after))) && len(c.patch) > 0 {
		return 0, errors.New("a patch, though nothing changed")
	}
	if c.view.isTyped() {
		trees := [4]*tree{parseTree(c.raw), parseTree(mustEncode(c.before)), parseTree(mustEncode(c.after)), parseTree(result)}
		if wrong := checkDocuments(trees[0], trees[1], trees[2], trees[3], place{typ: c.view.typ}, history); len(wrong) > 0 {
			return 0, errors.New(strings.Join(wrong, "\n"))
		}
	}
	for _, pair := range [][2][]byte{{c.raw, result}, {c.raw, mustEncode(c.after)}, {mustEncode(c.after), mustEncode(c.before)}} {
		if err := checkDocumentPair(pair[0], pair[1], 1); err != nil {
			return 0, err
		}
	}
	if !bytes.Equal(mustEncode(c.after), mustEncode(c.roundTrip(c.after))) {
		return 0, nil // JSON cannot represent the value, such as a pointer to a zero time, so an operation may be superfluous
	}
	return c.leaveOut(result, mustEncode(got))
}

// plain encodes the value, sorts the names in the JSON, and decodes it again. The order of names in raw JSON inside the
// value is then fixed, because a patch cannot set it.
func (c *oracleCase) plain(v any) any {
	dec := json.NewDecoder(bytes.NewReader(mustEncode(v)))
	dec.UseNumber()
	var sorted any
	if err := dec.Decode(&sorted); err != nil {
		panic(err)
	}
	return c.roundTrip(sorted)
}

func (c *oracleCase) roundTrip(v any) any {
	p, err := c.decode(mustEncode(v))
	if err != nil {
		panic(err)
	}
	return p
}

// leaveOut checks that up to four random operations of the patch are needed. It leaves out one at a time and requires a
// different result. It returns the number of checked operations.
func (c *oracleCase) leaveOut(full, want []byte) (checked int, err error) {
	order := rand.New(rand.NewSource(c.seed)).Perm(len(c.patch))
	for _, k := range order[:min(len(order), 4)] {
		checked++
		if c.patch[k].Path.Parent() == "/spec/pair" {
			continue // a Go array also decodes from a shorter list
		}
		rest := slices.Delete(slices.Clone(c.patch), k, k+1)
		result, err := apply(c.raw, rest.AppendJSON(nil))
		if err != nil || c.patch[k].Op == patch.Move && !bytes.Equal(result, full) {
			continue // a move may be needed only for the unknown members of the element
		}
		if got, err := c.decode(result); err == nil && bytes.Equal(mustEncode(got), want) {
			return checked, fmt.Errorf("operation %d changes nothing: %s", k, c.patch[k:k+1].AppendJSON(nil))
		}
	}
	return checked, nil
}

func apply(doc, text []byte) ([]byte, error) {
	p, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	return p.Apply(doc)
}
