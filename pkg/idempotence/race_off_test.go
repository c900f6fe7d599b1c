// SPDX-License-Identifier: Apache-2.0

//go:build !race

package idempotence

import (
	"os"
)

// share is the fraction of the corpus that is tested: 1 for all, 2 for every second case.
const share = 1

// objectsByURL and objectsOfRandom are the numbers of objects generated for a webhook behind a server and for a random
// webhook.
const objectsByURL, objectsOfRandom = 6, 4

// shareByURL and randomInUnit are the defaults of the flags for cases behind servers and for random webhooks. objectsOfCase
// is the number of objects generated for a webhook of the corpus in this process. All are larger with
// ADMITKIT_CASES=all, which `make nightly` sets.
var shareByURL, randomInUnit, objectsOfCase = casesFromEnvironment()

func casesFromEnvironment() (byURL, random, objects int) {
	if os.Getenv("ADMITKIT_CASES") == "all" {
		return 1, 200, 12
	}
	return 6, 24, 8
}
