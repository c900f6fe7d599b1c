// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"flag"
	"testing"

	"github.com/admitkit/admitkit/internal/bugs"
)

var randomCases = flag.Int("random-cases", 10/share, "how many random correct webhooks, and as many broken ones, are tested")

const randomSeed = 1

func TestFlagsNoRandomWebhook(t *testing.T) {
	for seed := int64(randomSeed); seed < randomSeed+int64(*randomCases); seed++ {
		correct, _ := bugs.Random(seed)
		if report := runCase(t, correct); !report.OK() {
			t.Errorf("seed %d: %s: a correct webhook is flagged:\n%s", seed, correct.Name, text(report))
		}
	}
	t.Logf("seeds %d to %d", randomSeed, randomSeed+*randomCases-1)
}

func TestFindsRandomBugs(t *testing.T) {
	for seed := int64(randomSeed); seed < randomSeed+int64(*randomCases); seed++ {
		_, broken := bugs.Random(seed)
		n := 0
		for {
			if _, ok := broken(n); !ok {
				break
			}
			n++
		}
		c, _ := broken(int(seed) % n)
		if report := runCase(t, c); report.OK() {
			t.Errorf("seed %d: %s: %v is not found:\n%s", seed, c.Name, c.Laws, text(report))
		}
	}
	t.Logf("seeds %d to %d", randomSeed, randomSeed+*randomCases-1)
}
