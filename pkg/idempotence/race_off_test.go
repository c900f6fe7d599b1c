// SPDX-License-Identifier: Apache-2.0

//go:build !race

package idempotence

import "os"

// share is the fraction of the corpus that is tested: 1 for all, 2 for every second case.
const share = 1

// objectsByURL and objectsOfRandom are the numbers of objects generated for a webhook behind a server and for a random
// webhook.
const objectsByURL, objectsOfRandom = 6, 4

// shareByURL and randomInUnit are the defaults of the flags for cases behind servers and for random webhooks.
// shareOfHeldOut is the fraction of the held-out cases, and of the cases with a custom resource whose schema is known.
// objectsOfCase is the number of objects generated for a webhook of the corpus in this process. With
// ADMITKIT_CASES=all, which `make nightly` sets, all cases are tested on more objects.
var shareByURL, randomInUnit, shareOfHeldOut, objectsOfCase = casesFromEnvironment()

func casesFromEnvironment() (byURL, random, heldOut, objects int) {
	if os.Getenv("ADMITKIT_CASES") == "all" {
		return 1, 200, 1, 12
	}
	return 6, 24, 3, 6
}
