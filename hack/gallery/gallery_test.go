// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/admitkit/admitkit/pkg/webhook"
)

const defaultSeed = 1

var (
	seed  = flag.Uint64("seed", defaultSeed, "selects the generated requests")
	cases = flag.Int("requests", 2000, "number of generated requests for each admission controller")
)

// TestMain discards the logs of the originals, which log an error for each unknown operator of a toleration, and of the
// clients, which log warnings of the API server. At the end it prints a line for each controller.
func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	log.SetLogger(logr.Discard())
	code := m.Run()
	printTable(os.Stdout)
	stopImageService()
	os.Exit(code)
}

func (r result) String() string {
	if r.verdict == allowed {
		return "allowed: " + text(r.object) + r.advice.String()
	}
	return fmt.Sprintf("%s: code %d, reason %q: %s%s", r.verdict, r.code, r.reason, r.message, r.advice)
}

// text returns an object as JSON.
func text(object runtime.Object) string {
	data, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (r result) equal(other result) bool {
	if r.verdict == allowed && other.verdict == allowed {
		return equality.Semantic.DeepEqual(r.object, other.object) && r.advice.equal(other.advice)
	}
	return r.advice.equal(other.advice) && r.verdict == other.verdict && r.code == other.code && r.reason == other.reason && r.message == other.message
}

// A tally counts the comparisons of one admission controller.
type tally struct {
	requests     int
	total, equal int // results: a request has one for the mutating and one for the validating part
	unequal      int // results with a difference that is not declared
	// results of the original
	changed, denied, failed int
}

func (c *tally) add(in runtime.Object, original result) {
	c.total++
	switch {
	case original.verdict == denied:
		c.denied++
	case original.verdict == failed:
		c.failed++
	case !equality.Semantic.DeepEqual(in, original.object):
		c.changed++
	}
}

// TestGallery sends each request to the original and to the hooks. The mutating and the validating parts are compared
// separately, with the same input.
func TestGallery(t *testing.T) {
	for _, c := range controllers() {
		t.Run(c.name, func(t *testing.T) {
			if c.timed {
				synctest.Test(t, func(t *testing.T) { compareAll(t, c) })
				return
			}
			compareAll(t, c)
		})
	}
}

func compareAll(t *testing.T, c *controller) {
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 1)), namespaces: namespaces(*seed)}
	count := &tally{}
	both := func(v *variant, r *request, name string) {
		count.requests++
		for _, mutating := range []bool{true, false} {
			compare(t, c, v, r.encoded(t), mutating, name, count)
		}
	}
	variants := c.start(t, g.namespaces)
	for _, v := range variants {
		for i, r := range c.edges(g) {
			both(v, r, fmt.Sprintf("edge case %d", i))
		}
	}
	for i := range *cases {
		if c.timed && g.oneIn(8) {
			<-time.After(pick(g, time.Nanosecond, 100*time.Millisecond, 500*time.Millisecond, time.Second, 2*time.Second)) // on the clock of the bubble
		}
		both(variants[i%len(variants)], c.generate(g), fmt.Sprintf("go test -seed %d: request %d", *seed, i))
	}
	summarize(t, c, count)
}

// compare calls the mutating or the validating part of the original and of the hooks, and compares the results. It
// returns the result of the original. The name identifies the request in messages.
func compare(t *testing.T, c *controller, v *variant, r *request, mutating bool, name string, count *tally) result {
	t.Helper()
	decided, ok := v.original(t, r, mutating)
	if !ok {
		if slices.ContainsFunc(v.hooks, func(h *webhook.Hook) bool { return h.Mutating() == mutating }) {
			t.Fatalf("there is a hook for a part that the original lacks: mutating is %v", mutating)
		}
		return result{verdict: allowed, object: r.object}
	}
	count.add(r.object, decided)
	original, ours := c.plainly(decided), c.plainly(v.ours(t, r, mutating))
	if ours.equal(original) {
		count.equal++
		return decided
	}
	if d := explained(c.differences, &comparison{T: t, request: r, original: original, ours: ours}); d != nil {
		d.used++
		return decided
	}
	t.Errorf("%s: %s: %s of %s %s: mutating is %v\noriginal %s\nours %s\nobject %s", name, c.name, r.operation, r.resource.Resource, r.subresource, mutating, original, ours, text(r.object))
	if count.unequal++; count.unequal == 5 {
		t.Fatal("there are too many differences")
	}
	return decided
}

func (c *controller) plainly(r result) result {
	if c.plain == nil {
		return r
	}
	return c.plain(r)
}

// summarize logs the counts. It fails if a declared difference never occurred, or if the original acted on too few
// requests.
func summarize(t *testing.T, c *controller, count *tally) {
	t.Helper()
	declared := "no declared differences"
	if len(c.differences) > 0 {
		declared = "declared differences:"
	}
	for _, d := range c.differences {
		declared += fmt.Sprintf(" %s (%d results),", d.name, d.used)
		rowOf(c).declared = append(rowOf(c).declared, d.name)
		if d.used == 0 {
			t.Errorf("the difference %q is declared, but never occurred: remove it", d.name)
		}
	}
	rowOf(c).inProcess = fmt.Sprintf("%d/%d", count.equal, count.total)
	t.Logf("%s: %d requests; %d/%d results equal; %s; the original changed %d, denied %d, failed %d",
		c.name, count.requests, count.equal, count.total, strings.TrimSuffix(declared, ","), count.changed, count.denied, count.failed)
	count.checkActed(t, c)
}
