// SPDX-License-Identifier: Apache-2.0

//go:build !race

package idempotence

import (
	"os"
)

// share is the fraction of the corpus that is tested: 1 for all, 2 for every second case.
const share = 1

// objectsOfCase, objectsByURL and objectsOfRandom are the numbers of objects generated for a webhook
// of the corpus in this process, behind servers, and for a random webhook.
const objectsOfCase, objectsByURL, objectsOfRandom = 12, 6, 4

// shareByURL and randomInUnit are the defaults of the flags for cases behind servers and for random
// webhooks. ADMITKIT_CASES=all, which `make nightly` sets, asks for all of them.
var shareByURL, randomInUnit = casesFromEnvironment()

func casesFromEnvironment() (byURL, random int) {
	if os.Getenv("ADMITKIT_CASES") == "all" {
		return 1, 200
	}
	return 6, 24
}
