// SPDX-License-Identifier: Apache-2.0

//go:build !race

package idempotence

// share is which part of the corpus is tested: all of it.
const share = 1

// shareByURL is which part of that is tested behind servers too, if no flag says otherwise.
const shareByURL = 3

// How many objects are made for a webhook of the corpus, in this process and by URL, and for a
// random one.
const objectsOfCase, objectsByURL, objectsOfRandom = 12, 6, 4

// randomInUnit is how many random webhooks are tested if no flag says otherwise.
const randomInUnit = 80
