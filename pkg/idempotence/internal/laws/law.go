// SPDX-License-Identifier: Apache-2.0

// Package laws checks the conditions that a webhook must meet to be safe to call again. These conditions are called
// laws. Each law has its own type, with a method that checks the law on one case.
package laws

// A Law is the name of a condition.
type Law string

// The laws. Their definitions are at the constants of the same names in package idempotence.
const (
	L1  Law = "L1"
	L2  Law = "L2"
	L3  Law = "L3"
	L4a Law = "L4a"
	L4b Law = "L4b"
	L5  Law = "L5"
	L6  Law = "L6"
	L7  Law = "L7"
	L8  Law = "L8"
	L9  Law = "L9"
	L10 Law = "L10"
	L11 Law = "L11"
	L12 Law = "L12"
)
