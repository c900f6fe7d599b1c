// SPDX-License-Identifier: Apache-2.0

//go:build race

package idempotence

// share is which part of the corpus is tested: with the race detector, which takes ten times as
// long, every tenth case. `make unit` tests all of it without.
const share, shareByURL = 10, 10

const objectsOfCase, objectsByURL, objectsOfRandom = 3, 2, 2

const randomInUnit = 3
