// SPDX-License-Identifier: Apache-2.0

//go:build race

package idempotence

// With the race detector, tests take ten times as long, so they use every tenth webhook of package corpus. `make
// corpus` runs more of them without it.
const raced = true

const share, shareByURL, shareOfHeldOut = 10, 10, 10

const objectsOfCase, objectsByURL, objectsOfRandom = 3, 2, 2

const randomInUnit = 3
