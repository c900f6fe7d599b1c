// SPDX-License-Identifier: Apache-2.0

//go:build !race

package idempotence

import "os"

const raced = false

// objectsByURL and objectsOfRandom are the numbers of objects generated for a webhook behind a server and for a random
// webhook.
const objectsByURL, objectsOfRandom = 6, 4

// shareByURL and randomInUnit are the defaults of the flags -url-share and -random-cases. share is n if the tests use
// every n-th webhook of package corpus in this process. shareOfHeldOut is the same for the held-out corpus and for the
// webhooks for Widgets. objectsOfCase is the number
// of objects generated for a webhook of package corpus in this process. With ADMITKIT_CASES=all, which `make nightly`
// sets, the tests use all webhooks and more objects.
var share, shareByURL, randomInUnit, shareOfHeldOut, objectsOfCase = casesFromEnvironment()

func casesFromEnvironment() (corpus, byURL, random, heldOut, objects int) {
	if os.Getenv("ADMITKIT_CASES") == "all" {
		return 1, 1, 200, 1, 12
	}
	return 3, 6, 24, 3, 6
}
