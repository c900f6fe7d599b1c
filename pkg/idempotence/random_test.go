// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"flag"
	"fmt"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/test/corpus"
)

var (
	randomCases   = flag.Int("random-cases", randomInUnit, "how many random correct webhooks, and as many broken ones, are tested")
	randomObjects = flag.Int("random-objects", objectsOfRandom, "how many objects are made for each")
	randomSeed    = flag.Int64("random-seed", 1, "the first seed")
)

func TestFlagsNoRandomWebhook(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed int64) {
		correct, _ := corpus.Random(seed)
		if report := runCase(t, correct, Options{Objects: *randomObjects}, ensuring...); !report.OK() {
			t.Errorf("%s: a correct webhook is flagged:\n%s", correct.Name, text(report))
		}
	})
}

func TestFindsRandomBugs(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed int64) {
		_, broken := corpus.Random(seed)
		n := 0
		for {
			if _, ok := broken(n); !ok {
				break
			}
			n++
		}
		c, _ := broken(int(seed) % n)
		if report := runCase(t, c, Options{Objects: *randomObjects}, ensuring...); !finds(report, c) {
			t.Errorf("%s: no violation of %v:\n%s", c.Name, c.Laws, text(report))
		}
	})
}

// ensuring lists the slowest families of inputs. The harness does not need them to judge webhooks that only add missing
// parts.
var ensuring = []explore.Family{explore.SingleSettings, explore.VariedSamples}

// eachSeed runs test as a subtest for each seed that the flags select.
func eachSeed(t *testing.T, test func(t *testing.T, seed int64)) {
	last := *randomSeed + int64(*randomCases) - 1
	t.Logf("seeds %d to %d, %d objects each", *randomSeed, last, *randomObjects)
	for seed := *randomSeed; seed <= last; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			test(t, seed)
		})
	}
}
