// SPDX-License-Identifier: Apache-2.0

//go:build !race

package idempotence

import "os"

// share is n if the tests use every n-th webhook of package corpus.
const share = 1

// objectsByURL and objectsOfRandom are the numbers of objects generated for a webhook behind a server and for a random
// webhook.
const objectsByURL, objectsOfRandom = 6, 4

// shareByURL and randomInUnit are the defaults of the flags -url-share and -random-cases. shareOfHeldOut is n if the
// tests use every n-th webhook of the held-out corpus, and every n-th webhook for Widgets. objectsOfCase is the number
// of objects generated for a webhook of package corpus in this process. With ADMITKIT_CASES=all, which `make nightly`
// sets, the tests use all webhooks and more objects.
var shareByURL, randomInUnit, shareOfHeldOut, objectsOfCase = casesFromEnvironment()

func casesFromEnvironment() (byURL, random, heldOut, objects int) {
	if os.Getenv("ADMITKIT_CASES") == "all" {
		return 1, 200, 1, 12
	}
	return 6, 24, 3, 6
}
