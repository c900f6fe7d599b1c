// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/admitkit/admitkit/hack/bench/subject"

// targets are the target ratios to controller-runtime, by row, size and shape.
var targets = map[[3]string]float64{
	{"validate", "2KB", "typed"}: 6, {"noop", "2KB", "typed"}: 5.5, {"mutate", "2KB", "typed"}: 9.5,
	{"validate", "9KB", "typed"}: 7, {"noop", "9KB", "typed"}: 6, {"mutate", "9KB", "typed"}: 12,
	{"validate", "197KB", "typed"}: 8.5, {"noop", "197KB", "typed"}: 7, {"mutate", "197KB", "typed"}: 17,

	{"validate", "2KB", "projection"}: 12, {"noop", "2KB", "projection"}: 12, {"mutate", "2KB", "projection"}: 19,
	{"validate", "9KB", "projection"}: 24, {"noop", "9KB", "projection"}: 17, {"mutate", "9KB", "projection"}: 36,
	{"validate", "197KB", "projection"}: 40, {"noop", "197KB", "projection"}: 22, {"mutate", "197KB", "projection"}: 50,
}

// allocBudgets are the maximum allocations of a call at 2 KB. Some limit only the allocations in excess of
// another row.
var allocBudgets = []struct {
	shape, row, over string
	most             float64
}{
	{subject.Typed, "validate", "", 55},
	{subject.Typed, "noop", "validate", 0},
	{subject.Typed, "mutate", "noop", 8},
	{subject.Projection, "validate", "", 30},
	{subject.Projection, "noop", "validate", 0},
	{subject.Projection, "mutate", "noop", 8},
}
