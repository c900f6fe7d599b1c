// SPDX-License-Identifier: Apache-2.0

//go:build !race

package idempotence

// share is which part of the corpus is tested: all of it.
const share, objectsOfCase, objectsByURL = 1, 12, 6
