// SPDX-License-Identifier: Apache-2.0

//go:build race

package idempotence

// share selects every tenth case: tests take ten times as long with the race detector. `make corpus`
// runs all cases without it.
const share, shareByURL, shareOfHeldOut = 10, 10, 10

const objectsOfCase, objectsByURL, objectsOfRandom = 3, 2, 2

const randomInUnit = 3
